"""Exploring answers: one HTML page that shows them with their traces and confidence."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.answers.answers import Source
from tracecal.answers.reading import Reading
from tracecal.calibrator.calibrator import Calibrator
from tracecal.errors import InputError
from tracecal.explorer.confidences import with_held_out
from tracecal.explorer.explorer_contents import EXPLORED
from tracecal.explorer.explorer_page import page
from tracecal.explorer.page_answers import load_page_answers
from tracecal.io.regular_files import write_text


def explore(
    answers: Source,
    output: str | Path,
    *,
    calibrator: str | Path | Calibrator | None = None,
    error_rate: float | None = None,
    number: int = EXPLORED,
    task: str | None = None,
    parts: str | Path | Mapping[str, Any] | None = None,
    reading: Reading | None = None,
) -> None:
    """Write a page that shows answers: one file that loads no other.

    Parameters
    ----------
    answers : path, frame or rows
        Answers in any format that `read_answers` reads. Columns such as ``question`` are shown,
        too.
    output : path
        The page, an HTML file.
    calibrator : path or Calibrator, optional
        Calibrator whose probabilities the page shows in place of scores.
    error_rate : float, optional
        Target error rate: the page shows which answers the calibrator keeps, and the threshold; by
        default the guaranteed rate nearest to 20 %.
    number : int
        Answers to show at most, drawn at random.
    task : str, optional
        Task of the answers; by default as their file states it.
    parts : path or mapping, optional
        Parts to show by themselves, as in `Calibrator.score`.
    reading : Reading, optional
        How to read the answers.

    Raises
    ------
    InputError
        If the answers are not of the calibrator's kind, or ``number`` is below 1.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.explore("new.jsonl", "answers.html", calibrator="C.json")
    """
    if number < 1:
        raise InputError(f"--number {number}: expected 1 or more answers.")
    loaded = load_page_answers(answers, calibrator, task, parts, reading, number)
    rate = loaded.guaranteed_rate if error_rate is None else error_rate
    data = loaded.page_data(number, rate)
    if data["decision"] and set(data["decision"]["kept"]) == {None}:  # as of labelled answers
        stated = None if error_rate is None else data["decision"]
        data["decision"] = loaded.kept_share(data, rate) or stated
    write_text(page(data), output)


def explore_labelled(
    answers: Source, output: str | Path, calibrator: Calibrator, predictions: pl.DataFrame
) -> None:
    """Write a page that shows the answers of a fit, each with `predictions` by other folds."""
    loaded = load_page_answers(answers, calibrator, calibrator.fitted_on.task)
    fits = with_held_out(loaded.fits, predictions, loaded.judged)
    data = replace(loaded, fits=fits).page_data(EXPLORED)
    data["decision"] = loaded.kept_share(data, loaded.guaranteed_rate)
    write_text(page(data), output)
