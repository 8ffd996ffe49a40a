"""What a job of the workflow is: its code, log, progress and random numbers, and what it spent."""
