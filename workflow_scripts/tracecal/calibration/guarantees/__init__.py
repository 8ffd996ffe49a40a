"""Thresholds with a guarantee, on a score that no tested label has touched."""
