"""Groups of answers to one question, which a fit, a split or a draw keeps together.

1. `group_answers` names the group of each answer, by question, distinctive trace or group id.
2. `place_answers` puts each group on a side: a fifth of the groups may fit a ranking, and of each
   of the others one answer tests thresholds. It decides by a hash of each answer's question, text
   and trace, so that neither a name, a seed nor the order of rows matters.

The hash is BLAKE2b with a digest of 8 bytes, read as a big-endian number, over

- the length in bytes (8 bytes, little-endian) and the UTF-8 of the question, without blanks at its
  ends and before the ends of lines; of an unknown question as of an empty one;
- the same of the answer;
- the surprisals as 32-bit floats, little-endian;
- where the answers of several questions are equal in all of that: the same of the id.
"""

import hashlib
from typing import Literal

import numpy as np
import polars as pl

from tracecal.answers.facts import without_blanks
from tracecal.answers.record import FLOATS, QUESTION
from tracecal.errors import InputError

# A trace with fewer distinct numbers may equal another question's by chance. Numbers of one or two
# digits do not count: of sure tokens logs with four decimals hold few others.
MIN_DISTINCT_VALUES, MAX_CHANCE_DIGITS = 3, 2
TRACE_COLUMNS = ("answer", "surprisal", "entropy")
KEYS = ("group_id", "question", "trace")  # answers with one of them in common are of one group
Side = Literal["fit", "test"]
FIT_SHARE = 0.2
MIN_FITTED = 100  # with fewer groups all labelled answers test, and no label fits a ranking


def group_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Return `example_id` and `group_id` of answers (`RECORDS`, or with their `question_keys`).

    Answers with a common group id, question or distinctive trace form one group, named after its
    first answer by id. Raises `InputError` if equal answers to one question differ in `correct`.
    """
    if "trace" not in answers.columns:
        answers = answers.with_columns(question_keys(answers))
    for key in (["question", "text"], ["trace"]):
        _require_agreement(answers.drop_nulls(key), key)
    answers = answers.select("example_id", *KEYS).sort("example_id")
    first = pl.Series(first_of_groups(answers))
    return answers.select("example_id", group_id=pl.col("example_id").gather(first))


def question_keys(answers: pl.DataFrame) -> pl.DataFrame:
    """Hashes of the question, the text and the trace of answers; None where unknown."""
    trace = pl.struct(TRACE_COLUMNS).struct.json_encode()
    # Traces that may be equal by chance are no key.
    trace = pl.when(has_distinctive_trace(answers)).then(trace)
    keys = {"question": QUESTION, "text": pl.col("answer"), "trace": trace}
    return answers.select(
        pl.when(key.is_not_null()).then(key.hash()).alias(name) for name, key in keys.items()
    )


def has_distinctive_trace(answers: pl.DataFrame) -> pl.Series:
    """Find the answers with traces that cannot be equal by chance, bool [n].

    >>> traces = {"surprisal": [[0.0, 1e-4, 2e-4], [0.1234, 1.01, 2.345]], "entropy": [None] * 2}
    >>> has_distinctive_trace(pl.DataFrame(traces)).to_list()
    [False, True]
    """
    lists = pl.col("surprisal", "entropy").cast(FLOATS).fill_null([])
    numbers = pl.concat_list(lists).list.eval(
        pl.element().filter(pl.element() != pl.element().round_sig_figs(MAX_CHANCE_DIGITS))
    )
    is_distinctive = numbers.list.n_unique() >= MIN_DISTINCT_VALUES
    return answers.select(distinctive=is_distinctive).to_series()


def first_of_groups(answers: pl.DataFrame) -> np.ndarray:
    """The first row of the group of each answer: of those with a common key of KEYS."""
    first = np.arange(answers.height)
    members = []
    for key in answers.select(KEYS):
        rows = key.is_not_null().arg_true().to_numpy()
        codes = key.drop_nulls()
        if codes.dtype == pl.String:
            codes = codes.cast(pl.Categorical).to_physical()
        order = np.argsort(codes.to_numpy(), kind="stable")
        sizes = codes.gather(order).rle().struct.field("len").cast(pl.Int64).to_numpy()
        if (repeats := sizes > 1).any():
            members.append((rows[order][np.repeat(repeats, sizes)], sizes[repeats]))
    while True:
        before = first.copy()
        for rows, sizes in members:
            least = np.minimum.reduceat(first[rows], np.cumsum(sizes) - sizes)
            np.minimum.at(first, first[rows], np.repeat(least, sizes))
        first = first[first]
        if (first == before).all():
            return first


def _require_agreement(answers: pl.DataFrame, key: list[str]) -> None:
    # Equal answers to different questions may be right and wrong.
    one_question = pl.col("question").drop_nulls().n_unique().over(key) <= 1
    verdicts = pl.col("correct").drop_nulls().n_unique().over(key)
    contradictory = answers.filter((verdicts > 1) & one_question)
    if contradictory.is_empty():
        return
    contradictory = contradictory.sort("example_id")
    first = contradictory.filter(pl.struct(key) == pl.struct(key).first())
    right, wrong = (first.filter(correct=value)["example_id"][0] for value in (True, False))
    raise InputError(
        f"the same answer to the same question is labelled correct in {right!r} and incorrect "
        f"in {wrong!r}: correct the labels, or leave both rows out."
    )


def place_answers(answers: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Order answers by content, and choose which of them test.

    The answers of a group are on one side, by its smallest hash. The hash of the first of several
    is hashed once more, as the smallest of several is smaller than that of a single answer.

    Parameters
    ----------
    answers : polars.DataFrame
        `example_id`, the question (`QUESTION`; None: unknown), `answer` and `surprisal` (None:
        without a trace), or the `content_hashes` of these. Parts name their answer in `parent_id`.
    groups : polars.DataFrame
        `example_id` and `group_id`, as `group_answers` returns them.

    Returns
    -------
    polars.DataFrame
        `example_id`; `rank`, the place of the group in an order that is random but fixed by its
        answers; `represents`: whether the answer, or the answer that a part is of, is the one of
        its group with the smallest hash; and `side` ('fit' or 'test'). Sorted by `rank` and hash.

    Examples
    --------
    >>> ids = ["a", "b", "c"]
    >>> answers = pl.DataFrame({"example_id": ids, "answer": "yes", "surprisal": [[0.5]] * 3})
    >>> groups = pl.DataFrame({"example_id": ids, "group_id": ["a", "a", "c"]})
    >>> unknown = pl.lit(None, pl.String)
    >>> place_answers(answers.with_columns(asked=unknown, prompt=unknown), groups)["rank"].to_list()
    [0, 1, 1]
    """
    answer_id = "parent_id" if "parent_id" in answers.columns else "example_id"
    rows = groups.select("example_id", "group_id").join(
        answers.select("example_id", whole=answer_id, hash=_hashes(answers, groups)),
        on="example_id",
    )
    wholes = _smallest(rows, "group_id", "whole").sort("hash", "whole")
    first = wholes.unique("group_id", keep="first", maintain_order=True)
    questions = _smallest(wholes, "group_id").with_columns(
        rank=pl.col("hash").rank("dense").cast(pl.Int64) - 1,
        side=pl.when(pl.col("hash") < int(FIT_SHARE * 2**64))
        .then(pl.lit("fit"))
        .otherwise(pl.lit("test")),
    )
    return (
        rows.join(questions.drop("hash"), on="group_id")
        .join(
            first.select("group_id", "whole", represents=True), on=["group_id", "whole"], how="left"
        )
        .sort("rank", "hash", "example_id")
        .select("example_id", "rank", "side", represents=pl.col("represents").fill_null(False))
    )


def in_order(answers: pl.DataFrame, groups: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return answers in the order of their contents, and their places (`place_answers`)."""
    members = groups.join(answers.select("example_id"), on="example_id", how="semi")
    places = place_answers(answers, members)
    order = places.select("example_id")
    return order.join(answers, on="example_id", how="left", maintain_order="left"), places


def _smallest(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """The smallest `hash` of the rows with the same keys, hashed once more where several differ."""
    smallest = rows.group_by(keys).agg(pl.col("hash").min(), several=pl.col("hash").n_unique() > 1)
    hashes = [
        _hash(value.to_bytes(8, "little")) if several else value
        for value, several in smallest.select("hash", "several").iter_rows()
    ]
    return smallest.select(*keys, hash=pl.Series(hashes, dtype=pl.UInt64))


def content_hashes(answers: pl.DataFrame) -> pl.DataFrame:
    """The hash of each answer, and the one that its id enters."""
    rows = answers.select("example_id", QUESTION, "answer", "surprisal").iter_rows()
    contents = [(_content(*content), _sized(example_id)) for example_id, *content in rows]
    hashes = [(_hash(content), _hash(content + name)) for content, name in contents]
    return pl.DataFrame(hashes, {"content": pl.UInt64, "with_id": pl.UInt64}, orient="row")


def _hashes(answers: pl.DataFrame, groups: pl.DataFrame) -> pl.Series:
    """The hash of each answer, which its id enters where another group has an equal answer."""
    hashes = answers if "with_id" in answers.columns else content_hashes(answers)
    rows = answers.select("example_id", content=hashes["content"], with_id=hashes["with_id"])
    rows = rows.join(groups, on="example_id", how="left", maintain_order="left")
    is_shared = pl.col("group_id").n_unique().over("content") > 1
    return rows.select(pl.when(is_shared).then("with_id").otherwise("content")).to_series()


def _content(question: str | None, answer: str | None, surprisal: list[float] | None) -> bytes:
    trace = b"" if surprisal is None else np.asarray(surprisal, dtype="<f4").tobytes()
    return _sized(without_blanks(question or "")) + _sized(without_blanks(answer or "")) + trace


def _sized(text: str) -> bytes:
    content = text.encode()
    return len(content).to_bytes(8, "little") + content


def _hash(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")
