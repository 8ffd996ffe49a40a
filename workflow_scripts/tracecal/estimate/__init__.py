"""Confidence scores from traces and other artefacts, one module per family of estimators."""
