"""Whether an answer is correct, and which kind of error a wrong one makes."""
