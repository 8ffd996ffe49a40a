"""The operators on a trace, and the features that are computed with them."""
