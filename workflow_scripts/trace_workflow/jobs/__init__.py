"""Jobs of the workflow: the hash of their code, their logs, progress, time and memory."""
