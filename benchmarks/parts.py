"""Cutting stored answers into parts, beside a search of each value's text in the answer's."""

import json
from collections.abc import Iterator

import numpy as np
import polars as pl

from benchmarks.timing import Row, paired
from tracecal.answers.parts.cutter import cut_parts
from tracecal.answers.parts.parts import Parts

SIZES = (20_000, 1_000_000)
NAMES = ("capital", "largest city", "continent", "currency", "calling code")
VALUES = ("Lima", "Sol", "South America", "+51", "Buenos Aires", "Euro", "Kuala Lumpur")
DIFFERENT = 1000  # texts, repeated


def made_up(answers: int, in_json: bool, seed: int = 0) -> pl.DataFrame:
    """Traces of answers that state five values, in pieces of four characters."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(min(answers, DIFFERENT)):
        values = dict(zip(NAMES, rng.choice(VALUES, len(NAMES)).tolist(), strict=True))
        lines = "\n".join(f"{name.capitalize()}: {value}" for name, value in values.items())
        texts.append(json.dumps(values) if in_json else lines)
    tokens = [[text[at : at + 4] for at in range(0, len(text), 4)] for text in texts]
    numbers = [[0.5] * len(own) for own in tokens]
    frame = pl.DataFrame(
        {"answer": texts, "tokens": tokens, "surprisal": numbers, "entropy": numbers},
        schema_overrides={"surprisal": pl.List(pl.Float32), "entropy": pl.List(pl.Float32)},
    )
    place = pl.int_range(answers, eager=True)
    return frame[place % frame.height].with_columns(example_id=place.cast(pl.String)).rechunk()


def searched(traces: pl.DataFrame) -> list[list[int]]:
    """Where each value's text stands, by `str.find`: neither tokens nor a parser."""
    return [[text.find(value) for value in VALUES if value in text] for text in traces["answer"]]


def rows() -> Iterator[Row]:
    """Lines, and values of JSON."""
    for answers in SIZES:
        for kind, parts in (("lines", Parts(lines=NAMES)), ("json", Parts(json=NAMES))):
            traces = made_up(answers, kind == "json")
            yield paired(
                f"parts of {answers:,} answers in {kind}",
                lambda traces=traces, parts=parts: cut_parts(traces, parts),
                lambda traces=traces: searched(traces),
                "str.find of each value",
                items=answers,
                unit="answers",
                repeats=3 if answers < 1_000_000 else 1,
            )
