"""Bringing models and rows in: from a hub, or from an installed package."""
