"""Which estimators there are, and the estimators and correctness rules that a user's file adds."""
