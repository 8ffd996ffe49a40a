"""Plugins of evaluators: the scorer of Inspect, the models of lm-evaluation-harness."""
