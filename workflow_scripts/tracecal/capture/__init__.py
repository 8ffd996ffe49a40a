"""Surprisal and entropy from a language model's logits, while it decodes or reads again."""
