"""The estimators: the features of a trace, which estimators there are, and their formulas."""
