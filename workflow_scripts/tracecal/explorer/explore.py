"""The page of answers: answers with the probabilities of a calibrator, in one HTML file.

`load_page_answers` reads answers with what a page shows of them; `explore` writes the page.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.answers import read
from tracecal.answers.parts.parts import Parts
from tracecal.answers.reading import Reading
from tracecal.answers.sources import Answers, answers_in, name_of
from tracecal.calibration.part_answers import part_answers
from tracecal.calibration.settings import EXPLORED, SEED
from tracecal.calibrator.calibrator import Calibrator, calibrator_in, parts_in
from tracecal.calibrator.schema import Fitted, FittedOn
from tracecal.explorer import of_file
from tracecal.explorer.page import page
from tracecal.io.files import write_text


@dataclass(frozen=True)
class PageAnswers:
    """Answers with their rows, and what a page shows of them.

    Attributes
    ----------
    answers : Answers
        The answers as read, with their rows.
    fits : mapping of str to Fitted
        A calibrator's fits by estimator; empty without a calibrator.
    task : str or None
        Task of the answers.
    parts : Parts or None
        Parts that are shown by themselves; None: whole answers.
    """

    answers: read.Answers
    fits: Mapping[str, Fitted]
    task: str | None
    parts: Parts | None

    @property
    def fitted_on(self) -> FittedOn | None:
        """What the calibrator was fitted on."""
        return next((fit.fitted_on for fit in self.fits.values()), None)

    def page_data(self, number: int | None = None, seed: int = 0) -> dict[str, Any]:
        """The data of a page that shows at most `number` answers, drawn at random."""
        name = name_of(self.answers)
        return of_file.page_data(self.answers, name, self.fits, number, seed, self.task, self.parts)

    @cached_property
    def data(self) -> dict[str, Any]:
        """The data of a page that shows all answers."""
        return self.page_data()

    @cached_property
    def judged(self) -> pl.DataFrame:
        """What gets a verdict: the answers, or their parts."""
        frame = self.answers.frame
        return frame if self.parts is None else part_answers(frame, self.parts)[0]

    def rows_to_judge(self) -> tuple[dict[str, Any], dict[str, str]]:
        """By id the row of each answer or part that gets a verdict, and the name of each part."""
        rows = dict(zip(self.answers.frame["example_id"], self.answers.rows, strict=True))
        if self.parts is None:
            return rows, {}
        ids, parents, names = self.judged.select("example_id", "parent_id", "name")
        part_rows = {id: rows[parent] for id, parent in zip(ids, parents, strict=True)}
        return part_rows, dict(zip(ids, names, strict=True))


def load_page_answers(
    answers: Answers | PageAnswers,
    calibrator: str | Path | Calibrator | None = None,
    task: str | None = None,
    parts: str | Path | Mapping[str, Any] | None = None,
    reading: Reading | None = None,
) -> PageAnswers:
    """Read answers with what a page shows of them. Returned unchanged if already loaded."""
    if isinstance(answers, PageAnswers):
        return answers
    fits: dict[str, Fitted] = {}
    if calibrator is not None:
        loaded = calibrator_in(calibrator)
        fits = of_file.fits(loaded.content, loaded.where)
        reading = loaded.reading(reading)
    source = answers_in(answers, reading, keep_rows=True)
    fitted_parts = next((fit.fitted_on.parts for fit in fits.values()), None)
    task = task or source.metadata.get("task")
    return PageAnswers(source, fits, task, parts_in(parts) or fitted_parts)


def explore(
    answers: Answers,
    output: str | Path,
    *,
    calibrator: str | Path | Calibrator | None = None,
    number: int = EXPLORED,
    seed: int = SEED,
    task: str | None = None,
    parts: str | Path | Mapping[str, Any] | None = None,
    reading: Reading | None = None,
) -> None:
    """Write a page that shows answers: one file that loads no other.

    Parameters
    ----------
    answers : path, frame or rows
        Answers in any format of `read_answers`. Columns such as ``question`` are shown, too.
    output : path
        The page, an HTML file.
    calibrator : path or Calibrator, optional
        Calibrator whose probabilities the page shows in place of scores.
    number : int
        Answers to show at most, drawn at random.
    seed : int
        Seed of the draw.
    task : str, optional
        Task of the answers; by default as their file states it.
    parts : path or mapping, optional
        Parts to show by themselves, as in `Calibrator.score`.
    reading : Reading, optional
        How to read the answers.

    Raises
    ------
    InputError
        If the answers are not of the calibrator's kind.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.explore("new.jsonl", "answers.html", calibrator="C.json")
    """
    loaded = load_page_answers(answers, calibrator, task, parts, reading)
    write_text(page(loaded.page_data(number, seed)), output)
