"""The answer explorer, and the findings in sentences."""
