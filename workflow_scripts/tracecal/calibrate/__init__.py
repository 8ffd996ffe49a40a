"""From scores to probabilities and guarantees: splits, protocol, metrics, risk control."""
