"""Formats of answers, a file each: how a row of it is recognised, and how it is read."""
