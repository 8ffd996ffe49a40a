"""What each figure draws."""
