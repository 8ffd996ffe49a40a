"""The fits from scores to probabilities: regressions, mixtures, pooled fits, and their settings."""
