"""The workflow: what its rules and their scripts are made from."""
