"""Answers of any source, read into traces: formats of servers and harnesses, and parts."""
