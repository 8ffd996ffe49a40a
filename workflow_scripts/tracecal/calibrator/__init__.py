"""The calibrator: its file, how it is fitted, what it says of answers, its report and its card."""
