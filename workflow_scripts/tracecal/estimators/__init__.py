"""The estimators: which there are, what each needs, and one module of formulas a family or kind."""
