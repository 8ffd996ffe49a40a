"""What a job of the workflow is: the hash of its code, its log, its progress, what it spent."""
