"""From scores to probabilities and guarantees: splits, fits, metrics, thresholds."""
