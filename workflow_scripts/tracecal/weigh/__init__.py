"""Encoders that weigh tokens and compare texts, for TokenSAR, MARS and the sampling estimators."""
