"""`tracecal score`: a probability for each answer of a file."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

import typer

import tracecal
from tracecal.answers.reading import Reading
from tracecal.cli.command import command
from tracecal.cli.options import reading_options
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.statistics.percentages import percent

if TYPE_CHECKING:
    import polars as pl

    from tracecal.answers.answers import Answers
    from tracecal.calibrator.predictor import Predictor

MOST_HELD = 2**24  # bytes of rows for stdout in memory, and not in a temporary file
UNDECIDED = 4  # status where no answer has a decision


@command(
    "get the probability that new answers are right",
    "tracecal score --answers new.jsonl --calibrator C.json --error-rate 0.1 --output scored.jsonl",
    options_of="Calibrator.score",
    texts_of=["Calibrator.load"],
    usual=["error_rate", "overall_error", "recall", "output", "beside"],
    models={"reading": reading_options("id", "columns", "wrong_rows")},
)
def score(
    *,
    answers: str,
    calibrator: str,
    reading: Reading,
    output: str | None = None,
    beside: str | None = None,
    estimators: str | None = None,
    parts: str | None = None,
    **options: Any,
) -> None:
    """Write a probability for each answer of a file.

    Rows keep their order. A text in .csv that a spreadsheet would execute begins with '. The
    command ends with 4 where no answer has a decision at the target that you ask for.

    Parameters
    ----------
    calibrator : path
        The calibrator's JSON file.
    output : path, optional
        A file whose name ends in .jsonl, .csv or .parquet (default: JSON Lines to stdout).
    beside : path, optional
        JSON Lines of the same answers, whose rows are written with a confidence added.
    """
    import polars as pl

    from tracecal.answers.groups import question_keys
    from tracecal.calibrator.guarantee_text import describe_target
    from tracecal.calibrator.predictor import TARGETS, target_of
    from tracecal.calibrator.scoring import (
        SCORED,
        WITHOUT_DECISION,
        categories,
        explain_no_decision,
        score_source,
        warn_of_missing,
    )

    target = target_of(*(options.get(name) for name in TARGETS))
    loaded = tracecal.Calibrator.load(calibrator, estimators=estimators)
    predictor = loaded.predictor(options.get("estimator"))
    has_parts = bool(parts or loaded.fitted_on.parts)
    if beside and has_parts:
        raise InputError("--beside writes the confidence of whole answers, not of parts.")
    if has_parts:
        scores = loaded.score(answers, parts=parts, reading=reading, **options)
        with scores_file(output) as write_parts:
            write_parts(scores)
    else:
        with nullcontext() if beside else scores_file(output) as write:

            def keep(some: "Answers", scored: "pl.DataFrame") -> "pl.DataFrame":
                if write is not None:
                    write(scored)
                scored = scored.drop("example_id").with_columns(categories("reason"))
                return question_keys(some.frame).hstack(scored)

            settings = loaded.reading(reading), predictor, target, options.get("task")
            kinds = score_source(answers, *settings, keep).frame
        if beside and kinds["surprisal"].is_null().all():
            lacks = kinds["lacks"].drop_nulls().unique().cast(pl.String).sort()
            raise InputError(
                f"{answers}: no answer has log-probabilities, so none has a confidence to write "
                f"({'; '.join(lacks)}). Replay the answers with 'tracecal replay', or have the "
                "program that asks keep them (docs/guides/evaluators.md)."
            )
        scores = kinds.select(*SCORED)
        warn_of_missing(scores, decided=target is not None)
    if (expected := expected_error_rate(scores)) is not None:
        n_kept = scores["keep"].sum()
        LOGGER.info(
            "%d of %d answers are kept; by their probabilities %s of these are wrong",
            *(n_kept, scores.height, percent(expected)),
        )
        if not has_parts and (repeats := count_questions(kinds, scores)):
            LOGGER.info(
                "keeps %d of %d answers, %d of %d questions", n_kept, scores.height, *repeats
            )
        error_rate = options.get("error_rate")
        if error_rate is not None and round(expected, 2) > error_rate:
            LOGGER.warning(
                "that is more than the %s you asked for: these answers may be harder than the "
                "labelled ones. 'tracecal watch' tests whether they differ, and 'tracecal check' "
                "whether the guarantee holds for them, with verdicts on some",
                percent(error_rate),
            )
    if (sentence := describe_target(predictor.control, target)) is not None:
        LOGGER.info("%s", sentence)
    for explanation in explain_keeping(scores, predictor):
        LOGGER.info("%s", explanation)
    if beside and (unscored := write_beside(scores, beside, reading, output)):
        LOGGER.warning("%d rows of %s are not in %s", unscored, beside, answers)
    if target is not None and (reason := explain_no_decision(scores)) is not None:
        if has_parts:
            LOGGER.warning(WITHOUT_DECISION, reason)
        raise typer.Exit(UNDECIDED)


def expected_error_rate(scores: "pl.DataFrame") -> float | None:
    """The share of kept answers that is wrong by their probabilities; None if none is kept."""
    if "keep" not in scores.columns:
        return None
    mean = scores["probability"].filter(scores["keep"]).mean()
    return None if mean is None else 1 - float(mean)  # type: ignore[arg-type]


def count_questions(kinds: "pl.DataFrame", scores: "pl.DataFrame") -> tuple[int, int] | None:
    """To how many questions answers are kept, and how many there are; None where none repeats."""
    import numpy as np

    from tracecal.answers.groups import first_of_groups

    first = first_of_groups(kinds)
    n_questions = int((first == np.arange(len(first))).sum())
    if n_questions == len(first):
        return None
    is_kept = np.zeros(len(first), bool)
    is_kept[first[scores["keep"].fill_null(False).to_numpy()]] = True
    return int(is_kept.sum()), n_questions


def explain_keeping(scores: "pl.DataFrame", predictor: "Predictor") -> list[str]:
    """Why answers are kept that are not the most probable ones, or that are likelier wrong."""
    import polars as pl

    from tracecal.calibrator.guarantee_text import describe_ranking

    if "keep" not in scores.columns or not scores["keep"].any():
        return []
    decided = scores.select("probability", "keep").drop_nulls("keep")
    sentences, kept_answers = [], decided.filter("keep")
    most_probable = decided.sort("probability", descending=True).head(kept_answers.height)
    n_others = kept_answers.height - most_probable.filter("keep").height
    if predictor.control is not None:
        sentences.append(describe_ranking(predictor.control, kept_answers.height, n_others))
    unlikely = kept_answers.filter(pl.col("probability") < 0.5)
    if unlikely.height:
        sentences.append(
            f"{unlikely.height} of {kept_answers.height} kept answers have a probability below "
            f"50 %, the lowest {min(unlikely['probability']):.2f}: the guarantee is about the "
            "share of wrong answers among all that are kept, from a threshold on, not about each "
            "of them"
        )
    return sentences


@contextmanager
def scores_file(output: str | None) -> "Iterator[Callable[[pl.DataFrame], object]]":
    """Yield a function that writes scores to .jsonl, .csv or .parquet, whole or not at all.

    Without `output` they go to stdout as JSON Lines. Probabilities have four digits. In CSV, which
    has no lists, each of an answer's `parts` is a row.
    """
    import polars as pl

    from tracecal.calibrator.scoring import with_digits
    from tracecal.io.files import write_parquet
    from tracecal.io.spreadsheet_cells import escape_formula

    suffix = Path(output).suffix if output else ".jsonl"
    if suffix not in (".jsonl", ".csv", ".parquet"):
        raise InputError(f"{output}: expected a name that ends in .jsonl, .csv or .parquet.")
    if output and suffix == ".parquet":
        frames = list[pl.DataFrame]()
        yield lambda scores: frames.append(with_digits(scores))
        write_parquet(pl.concat(frames), output)
        return

    def append(scores: pl.DataFrame) -> None:
        scores = with_digits(scores)
        if suffix == ".jsonl":
            scores.write_ndjson(file)
            return
        if "parts" in scores.columns:
            answers = scores.rename({"reason": "without_parts"})
            scores = answers.explode("parts").unnest("parts")
        escaped = pl.col(pl.String).map_elements(escape_formula, return_dtype=pl.String)
        scores.with_columns(escaped).write_csv(file, include_header=not file.tell())

    with _bytes_file(output) as file:
        yield append


@contextmanager
def _bytes_file(output: str | None) -> Iterator[IO[bytes]]:
    """A file that is written whole or not at all; without `output` it goes to stdout."""
    from tracecal.io.regular_files import atomic_write

    if output:
        with atomic_write(output) as part, part.open("wb") as file:
            yield file
    else:
        with SpooledTemporaryFile(MOST_HELD) as held:
            yield held
            held.seek(0)
            _print_rows(held)


def write_beside(scores: "pl.DataFrame", answers: str, reading: Reading, output: str | None) -> int:
    """Write the rows of `answers` as JSON Lines, each with the `confidence` of its id or None.

    Without `output` they go to stdout. Returns how many have none.
    """
    import polars as pl

    from tracecal.answers.answers import Answers, answers_in, facts_of
    from tracecal.calibrator.scoring import with_digits

    if output and Path(output).suffix != ".jsonl":
        raise InputError(f"{output}: expected a name that ends in .jsonl.")
    places = {name: place for place, name in enumerate(scores["example_id"])}
    confidences = with_digits(scores.drop("example_id"))
    with _bytes_file(output) as file:

        def write(some: Answers) -> pl.DataFrame:
            found = [places.get(name) for name in some.frame["example_id"]]
            for row, place in zip(some.rows, found, strict=True):
                confidence = None if place is None else confidences.row(place, named=True)
                line = json.dumps({**row, "confidence": confidence}, ensure_ascii=False)
                file.write(f"{line}\n".encode(errors="backslashreplace"))
            return facts_of(some.frame).with_columns(place=pl.Series(found, dtype=pl.Int64))

        rows = answers_in(answers, reading, keep_rows=True, keep=write)
    return rows.frame["place"].null_count()


def _print_rows(rows: IO[bytes]) -> None:
    """Write JSON Lines to stdout as UTF-8, whatever the encoding of the terminal."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    for row in rows:
        sys.stdout.write(row.decode())
