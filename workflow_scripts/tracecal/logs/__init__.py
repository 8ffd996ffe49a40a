"""Answers from elsewhere: what servers and evaluation harnesses write, read into traces."""
