"""The id of the baseline that is picked in each split, which stands beside the estimators' ids."""

PICKED = "picked_baseline"
