"""The configuration: its keys and defaults, and which estimators a run computes by them."""
