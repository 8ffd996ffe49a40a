"""Whether new answers are like the labelled ones: monitors, their state, and `check`."""
