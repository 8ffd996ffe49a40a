"""Thresholds with a guarantee: error rates, recall, the overall error rate, and forecasts."""
