"""Confidence of live answers: the proxy, monitors of its traffic, and plugins of evaluators."""
