"""The parts of an answer: where each value stands in its text, and which tokens spell it."""
