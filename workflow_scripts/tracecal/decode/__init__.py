"""Running a language model: answers and traces, beams, samples, hidden states, more questions."""
