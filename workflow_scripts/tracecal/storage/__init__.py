"""Files written whole or not at all, with checksums, digests and journals of finished batches."""
