"""The configuration: its keys, defaults and checks, its tasks, and what a run computes."""
