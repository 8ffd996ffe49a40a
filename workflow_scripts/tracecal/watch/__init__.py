"""Alarms, valid at any time, for traffic unlike the calibration's and error rates above target."""
