"""Files and settings read within bounds, and written whole or not at all, with checksums."""
