"""The command `tracecal` and its library: calibrate, score and serve without the workflow."""
