"""The paper's own numbers, and tables that put a run's beside them."""
