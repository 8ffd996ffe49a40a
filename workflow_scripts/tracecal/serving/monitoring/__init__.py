"""Alarms, valid at any time, for traffic unlike the calibration's and for too many errors."""
