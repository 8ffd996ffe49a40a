"""Jobs of the workflow: the hash of their code, their logs and their progress."""
