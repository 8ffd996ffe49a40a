"""The estimators: which there are, what each needs, one module of formulas a family."""
