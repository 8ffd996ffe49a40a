"""Labelling: which answers to label, the page for it, and how far labels agree."""
