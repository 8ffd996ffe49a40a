"""The normalised text by which two answers count as the same."""

import polars as pl

# Characters that may open or close an answer without being part of it; signs, currency and % are.
_OPENING = r"""^[\s\p{Pi}\p{Ps}"'¿¡]+"""
_CLOSING = r"""[\s\p{Pf}\p{Pe}"'.,;:!?…。、，；：！？؟؛،।]+$"""


def normalised(text: pl.Expr) -> pl.Expr:
    """Text without case, compatibility forms, surrounding punctuation or extra spaces."""
    plain = text.str.normalize("NFKC").str.to_lowercase()
    return plain.str.replace(_OPENING, "").str.replace(_CLOSING, "").str.replace_all(r"\s+", " ")
