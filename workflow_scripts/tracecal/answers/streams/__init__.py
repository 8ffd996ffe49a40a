"""Answers that servers send in pieces: for each kind of stream, how its pieces make an answer."""
