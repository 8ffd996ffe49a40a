"""Bringing in models and rows: from the Hugging Face hub, from packages and from folders."""
