"""Normalised texts: answers with equal ones count as the same."""

import polars as pl

# Characters that may open or close an answer without being part of it; signs, currency and % are.
OPENING = r"""^[\s\p{Pi}\p{Ps}"'¿¡]+"""
CLOSING = r"""[\s\p{Pf}\p{Pe}"'.,;:!?…。、，；：！？؟؛،।]+$"""


def normalised(text: pl.Expr) -> pl.Expr:
    """Text without case, compatibility forms, surrounding punctuation or extra spaces.

    >>> pl.select(normalised(pl.lit("“The  Thames.”"))).item()
    'the thames'
    """
    plain = text.str.normalize("NFKC").str.to_lowercase()
    return plain.str.replace(OPENING, "").str.replace(CLOSING, "").str.replace_all(r"\s+", " ")
