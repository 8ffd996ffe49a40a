"""Parts of an answer: which there are, where they stand, and the traces of each."""
