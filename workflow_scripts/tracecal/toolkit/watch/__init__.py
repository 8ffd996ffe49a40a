"""Watching a calibrator's traffic: the state in SQLite, and the command `tracecal watch`."""
