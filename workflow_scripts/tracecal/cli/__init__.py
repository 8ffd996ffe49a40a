"""The command `tracecal`."""
