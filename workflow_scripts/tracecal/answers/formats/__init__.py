"""Formats of answers, a file each: how a row is recognised, and how it is read."""
