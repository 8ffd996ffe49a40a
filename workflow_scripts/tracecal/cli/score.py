"""`tracecal score`: a probability for each answer of a file."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracecal.cli.options import (
    PARTS,
    AnswersFile,
    AsRead,
    CalibratorFile,
    Custom,
    TaskName,
    command,
)
from tracecal.errors import InputError
from tracecal.io.log import LOGGER

if TYPE_CHECKING:
    import polars as pl

# What a spreadsheet would execute at the beginning of a cell.
FORMULA = r"^[=+\-@\t\r]"
KEPT = "Which answers are kept"
SCORED = "What is scored"


@command(
    "have the probability that new answers are right",
    "tracecal score --answers new.jsonl --calibrator C.json --error-rate 0.1 --output scored.jsonl",
)
def score(
    answers: AnswersFile,
    calibrator: CalibratorFile,
    reading: AsRead,
    output: Annotated[
        str | None, typer.Option(help=".jsonl, .csv or .parquet (default: JSON Lines to stdout)")
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="JSON Lines of the same answers, whose rows are written with a confidence added",
        ),
    ] = None,
    error_rate: Annotated[
        float | None, typer.Option(help="target error rate", rich_help_panel=KEPT)
    ] = None,
    promise: Annotated[
        str | None,
        typer.Option(
            help="guarantee of a cascade by which answers are kept, such as below:0.02; the "
            "calibrator is of 'tracecal cascade'",
            rich_help_panel=KEPT,
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            help="one of the calibrator's file (default: the one that 'tracecal calibrate' "
            "recommended; for answers without entropies the best of log-probabilities alone)",
            rich_help_panel=SCORED,
        ),
    ] = None,
    estimators: Custom = None,
    task: TaskName = None,
    parts: Annotated[
        str | None,
        typer.Option(help=f"parts: {PARTS}; by default the calibrator's", rich_help_panel=SCORED),
    ] = None,
) -> None:
    """Write a probability for each answer of a file.

    Rows keep their order. A text in .csv that a spreadsheet would execute begins with '.
    """
    from tracecal.answers.sources import answers_in
    from tracecal.calibrator.calibrator import Calibrator

    fitted = Calibrator.load(calibrator, estimators=estimators)
    of_parts = parts or fitted.fitted_on.parts
    if beside and of_parts:
        raise InputError("--beside writes the confidence of whole answers, not of parts.")
    given = answers_in(answers, fitted.reading(reading))
    if beside and given.frame["surprisal"].is_null().all():
        lacking = given.frame["lacks"].drop_nulls().unique().sort()
        raise InputError(
            f"{answers}: no answer has log-probabilities, so none has a confidence to write "
            f"({'; '.join(lacking)}). Replay the answers with 'tracecal replay', or have them kept "
            "where they are made (docs/guides/evaluators.md)."
        )
    target = {"error_rate": error_rate, "guarantee": promise}
    scored = fitted.score(given, **target, estimator=estimator, task=task, parts=parts)
    if beside:
        rows = answers_in(beside, reading, with_rows=True)
        without = write_beside(scored, rows.frame["example_id"].to_list(), rows.rows, output)
        if without:
            LOGGER.warning("%d rows of %s are not in %s", without, beside, answers)
    else:
        write_scored(scored, output)


def write_scored(scored: "pl.DataFrame", output: str | None) -> None:
    """Write scored answers as .jsonl, .csv or .parquet; null: JSON Lines to the standard output.

    Probabilities have four digits. In CSV, which has no lists, each of an answer's `parts` is a
    row.
    """
    import polars as pl

    from tracecal.calibrator.scoring import with_digits
    from tracecal.io.files import write_parquet, write_text

    scored, suffix = with_digits(scored), Path(output).suffix if output else ".jsonl"
    if output and suffix == ".parquet":
        write_parquet(scored, output)
    elif suffix not in (".jsonl", ".csv"):
        raise InputError(f"{output}: expected a name that ends in .jsonl, .csv or .parquet.")
    elif not output:
        sys.stdout.write(scored.write_ndjson())
    elif suffix == ".csv":
        if "parts" in scored.columns:
            of_answers = scored.rename({"reason": "without_parts"})
            scored = of_answers.explode("parts").unnest("parts")
        guarded = pl.col(pl.String).str.replace(f"({FORMULA})", "'${1}")
        write_text(scored.with_columns(guarded).write_csv(), output)
    else:
        write_text(scored.write_ndjson(), output)


def write_beside(
    scored: "pl.DataFrame",
    ids: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    output: str | None,
) -> int:
    """Write `rows` of answers with these `ids`, each with its `confidence` of `scored` or null, as
    JSON Lines; `output` null: to the standard output. Returns for how many it is null.
    """
    from tracecal.calibrator.scoring import with_digits
    from tracecal.io.files import write_text

    if output and Path(output).suffix != ".jsonl":
        raise InputError(f"{output}: expected a name that ends in .jsonl.")
    known = {row.pop("example_id"): row for row in with_digits(scored).iter_rows(named=True)}
    found = [known.get(example_id) for example_id in ids]
    lines = [
        json.dumps({**row, "confidence": one}, ensure_ascii=False) + "\n"
        for row, one in zip(rows, found, strict=True)
    ]
    if output:
        write_text("".join(lines), output)
    else:
        sys.stdout.write("".join(lines))
    return found.count(None)
