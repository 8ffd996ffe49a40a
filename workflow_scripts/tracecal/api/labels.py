"""Which answers to label, how many, and where labels decide; how far two people agree."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.answers import read
from tracecal.answers.parts.parts import Parts
from tracecal.answers.reading import Reading
from tracecal.answers.sources import Answers, answers_in, frame_of, name_of
from tracecal.calibration import forecast, populations
from tracecal.calibration.part_answers import part_answers
from tracecal.calibration.settings import EXPLORED, SEED
from tracecal.calibrator.calibrator import Calibrator, calibrator_in, parts_in
from tracecal.calibrator.fitting import FitSettings
from tracecal.calibrator.schema import Fitted, FittedOn, default_estimator
from tracecal.errors import InputError
from tracecal.explorer import of_file
from tracecal.explorer.page import page
from tracecal.io.files import write_text
from tracecal.labelling import agree as agree_
from tracecal.labelling import draw, record, search
from tracecal.labelling import plan as plan_
from tracecal.labelling.sequential import Population


def pick(
    answers: Answers,
    number: int,
    *,
    output: str | Path | None = None,
    seed: int = SEED,
    reading: Reading | None = None,
) -> pl.DataFrame:
    """Draw answers to label at random, those to one question together, as ``tracecal pick``.

    Parameters
    ----------
    answers : path, frame or rows
        As of `read_answers`.
    number : int
        Answers to draw, at least; a larger number goes on where a smaller one ended.
    output : path, optional
        A file for the rows drawn, as they were given: JSON Lines.
    seed : int
        Of the draw.
    reading : Reading, optional
        How the answers are read.

    Returns
    -------
    polars.DataFrame
        Rows of `read_answers`, to be labelled from the first on.

    Raises
    ------
    InputError
        Where there are fewer answers.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.pick("labelled.jsonl", 20)["example_id"].n_unique()
    20
    """
    known = answers_in(answers, reading, keep_rows=output is not None)
    drawn = draw.draw_answers(known.frame, number, seed)
    if output is not None:
        rows = dict(zip(known.frame["example_id"], known.rows, strict=True))
        chosen = [draw.add_metadata(rows[name], known.metadata) for name in drawn]
        write_text(draw.to_json_lines(chosen), output)
    order = pl.DataFrame({"example_id": drawn})
    return order.join(frame_of(known), on="example_id", how="left", maintain_order="left")


@dataclass(frozen=True)
class Shown:
    """Answers with their rows, and what is shown of them: the fits of a calibrator by estimator,
    none without one; their task; and which parts of them, null for whole answers.
    """

    answers: read.Answers
    fits: Mapping[str, Fitted]
    task: str | None
    parts: Parts | None

    @property
    def fitted_on(self) -> FittedOn | None:
        """Of the calibrator."""
        return next((one.fitted_on for one in self.fits.values()), None)

    def page_data(self, number: int | None = None, seed: int = 0) -> dict[str, Any]:
        """Of a page that shows at most `number` of them."""
        about = self.fits, number, seed, self.task, self.parts
        return of_file.page_data(self.answers, name_of(self.answers), *about)

    @cached_property
    def data(self) -> dict[str, Any]:
        """Of a page that shows all of them."""
        return self.page_data()

    @cached_property
    def judged(self) -> pl.DataFrame:
        """What gets a verdict: the answers, or their parts."""
        frame = self.answers.frame
        return frame if self.parts is None else part_answers(frame, self.parts)[0]

    def to_judge(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The row of each that gets a verdict and, of parts, its name, by its id."""
        rows = dict(zip(self.answers.frame["example_id"], self.answers.rows, strict=True))
        if self.parts is None:
            return rows, {}
        ids, answers, names = self.judged.select("example_id", "parent_id", "name")
        own = {one: rows[answer] for one, answer in zip(ids, answers, strict=True)}
        return own, dict(zip(ids, names, strict=True))


def shown_in(
    answers: Answers,
    calibrator: str | Path | Calibrator | None,
    task: str | None,
    parts: str | Path | Mapping[str, Any] | None,
    reading: Reading | None,
) -> Shown:
    """Answers in any form as they are shown; what was made by this is given back."""
    if isinstance(answers, Shown):
        return answers
    fits: dict[str, Fitted] = {}
    if calibrator is not None:
        whole = calibrator_in(calibrator)
        fits = of_file.fits(whole.content, whole.where)
        reading = whole.reading(reading)
    known = answers_in(answers, reading, keep_rows=True)
    own = next((one.fitted_on.parts for one in fits.values()), None)
    task = task or known.metadata.get("task")
    return Shown(known, fits, task, parts_in(parts) or own)


class LabelSearch:
    """Ask only for labels that a guaranteed error rate needs, as ``tracecal label --error-rate``.

    Of the answers whose score reaches a threshold at most `error_rate` are wrong, with
    `confidence`; the search looks for the threshold that keeps most. The labelled answers are no
    random sample: do not calibrate on them.

    Parameters
    ----------
    answers : path, frame or rows
        As of `read_answers`; labels that they have are not looked at.
    error_rate : float
        Largest share of wrong answers among those kept.
    calibrator : path or Calibrator, optional
        For probabilities in place of scores.
    estimator : str, optional
        Whose score or probability decides; by default the recommended one, or TRACE+.
    confidence : float
        Of the guarantee.
    population : {"finite", "further"}
        Which answers it is about: these, or further ones like them.
    largest_group : int, optional
        With ``"further"``: how many answers of a question count at most; by default as many as the
        largest question has.
    seed : int
        Of the order of asking.
    task, parts
        As of `Calibrator.score`.
    promise_file : path, optional
        JSON file, written before a state is returned. Like the command's file it lists all searches
        that have looked at the same labels. Give it where you try several seeds, rates or scores on
        the same labels: the best of several guarantees is less certain than each.
    reading : Reading, optional
        How the answers are read.

    Raises
    ------
    InputError
        Where a setting is out of range, or the answers lack the score.

    Examples
    --------
    >>> import tracecal
    >>> answers = tracecal.read_answers("labelled.jsonl")
    >>> truth = dict(answers.select("example_id", "correct").iter_rows())
    >>> search = tracecal.LabelSearch(answers, 0.5, calibrator="C.json")
    >>> found = search.run(truth.get)
    >>> found["labels"] <= 120 and found["next"] is None
    True
    """

    def __init__(
        self,
        answers: Answers,
        error_rate: float,
        *,
        calibrator: str | Path | Calibrator | None = None,
        estimator: str | None = None,
        confidence: float = 0.9,
        population: Population = "finite",
        largest_group: int | None = None,
        seed: int = SEED,
        task: str | None = None,
        parts: str | Path | Mapping[str, Any] | None = None,
        promise_file: str | Path | None = None,
        reading: Reading | None = None,
    ) -> None:
        shown = shown_in(answers, calibrator, task, parts, reading)
        recommended = None if shown.fitted_on is None else shown.fitted_on.estimator
        estimator, values = of_file.scores(shown.data, estimator, recommended)
        wanted = search.Wanted(estimator, error_rate, confidence, population, largest_group, seed)
        query = search.LabelQuery(shown.judged, values, wanted)
        self.query: search.LabelQuery | record.Recorded = query
        if promise_file is not None:
            self.query = record.Recorded(query, Path(promise_file))

    def state(self, labels: Mapping[str, bool | None]) -> dict[str, Any]:
        """How the search stands by the labels so far, by the answers' ids; null counts as wrong.

        Parameters
        ----------
        labels : mapping of str to bool or None
            Of those that were asked for, or of any answers: others are not looked at.

        Returns
        -------
        dict
            What ``.promise.json`` holds: the ``threshold`` that is guaranteed (null: none), the
            share of answers it keeps (``coverage``), how many ``labels`` were looked at, and which
            answer is to be labelled ``next`` (null: the search has ended).

        Examples
        --------
        >>> import tracecal
        >>> search = tracecal.LabelSearch("labelled.jsonl", 0.5, calibrator="C.json")
        >>> search.state({})["labels"]
        0
        """
        given = {name: search.Verdict(correct) for name, correct in labels.items()}
        return self.query.record(given)

    def run(
        self,
        judge: Callable[[str], bool | None],
        labels: Mapping[str, bool | None] | None = None,
    ) -> dict[str, Any]:
        """Search to the end, with a function that labels the answer of an id.

        Parameters
        ----------
        judge : callable
            Gives whether the answer with an id is correct; null: unsure.
        labels : mapping, optional
            Labels at hand.

        Returns
        -------
        dict
            The last `state`.

        Examples
        --------
        >>> import tracecal
        >>> search = tracecal.LabelSearch("labelled.jsonl", 0.5, calibrator="C.json")
        >>> search.run(lambda example_id: False)["threshold"] is None
        True
        """
        known = dict(labels or {})
        while (found := self.state(known))["next"] is not None:
            known[found["next"]] = judge(found["next"])
        return found


def agree(
    answers: Answers, second: Answers, *, seed: int = SEED, reading: Reading | None = None
) -> agree_.Agreement:
    """Say how far two people's labels of the same answers agree, as ``tracecal agree``.

    Parameters
    ----------
    answers, second : path, frame or rows
        As of `read_answers`, with ``correct``; joined by their ids.
    seed : int
        Of the resampled questions, for intervals.
    reading : Reading, optional
        How both are read.

    Returns
    -------
    tracecal.labelling.agree.Agreement
        ``n``, the ``share`` of equal verdicts and Cohen's ``kappa`` with their intervals, and the
        answers on which they disagree (``apart``); its text is what the command prints.

    Raises
    ------
    InputError
        Where no answer has two labels.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.agree("labelled.jsonl", "labelled.jsonl").share[0]
    1.0
    """
    first, other = (answers_in(one, reading).frame for one in (answers, second))
    return agree_.measure_agreement(first, other, seed)


@dataclass(frozen=True)
class Plan:
    """How often an error rate can be guaranteed, by the number of labelled questions.

    `table` has a row per number of ``questions``: ``guaranteed``, the share of simulated draws with
    a guarantee, and the share of answers kept, ``median``, ``low`` and ``high`` (between which are
    80 % of the draws). `str` gives what `tracecal plan` prints.
    """

    table: pl.DataFrame
    error_rate: float
    confidence: float
    text: str

    def __str__(self) -> str:
        return self.text

    def picture(self) -> str:
        """The table as SVG."""
        return plan_.draw_plan(self.table, self.error_rate, self.confidence)

    def _repr_svg_(self) -> str:
        return self.picture()


def plan(
    error_rate: float,
    *,
    calibrator: str | Path | Calibrator | None = None,
    accuracy: float | None = None,
    auroc: float | None = None,
    confidence: float = 0.9,
    most: int = forecast.MOST,
    draws: int = forecast.DRAWS,
    seed: int = SEED,
) -> Plan:
    """Say how many labels a guaranteed error rate needs, as ``tracecal plan``.

    Parameters
    ----------
    error_rate : float
        Target error rate of the answers kept.
    calibrator : path or Calibrator, optional
        Whose labelled answers are drawn from.
    accuracy, auroc : float, optional
        Without a calibrator: the share of right answers, and how well the confidence ranks them.
    confidence : float
        Of the guarantee.
    most : int
        Largest number of labelled questions to try.
    draws : int
        Simulated draws of each number.
    seed : int
        Of the draws.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        Where there are neither both guesses nor a calibrator, or a setting is out of range.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.plan(0.3, accuracy=0.9, auroc=0.8, most=50, draws=5).table.height
    1
    """
    known: Any
    if calibrator is not None and accuracy is None and auroc is None:
        whole = calibrator_in(calibrator)
        known = forecast.labelled_population(
            whole.content[default_estimator(whole.content)], whole.where
        )
    elif calibrator is None and accuracy is not None and auroc is not None:
        known = populations.BinormalPopulation(accuracy, auroc)
    else:
        raise InputError("give either --calibrator, or --accuracy and --auroc as guesses.")
    share = FitSettings().splits.calibration_share
    table = forecast.forecast_table(known, share, error_rate, confidence, most, draws, seed)
    text = plan_.format_plan(known, table, error_rate, confidence)
    return Plan(table, error_rate, confidence, text)


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
    """Write a page that shows the answers, as ``tracecal explore``: one file that loads no other.

    Parameters
    ----------
    answers : path, frame or rows
        As of `read_answers`. Of a frame and rows, columns such as ``question`` are shown, too.
    output : path
        The page.
    calibrator : path or Calibrator, optional
        For probabilities in place of scores.
    number : int
        Answers to show at most, chosen at random.
    seed : int
        Of that choice.
    task, parts, reading
        As of `Calibrator.score`.

    Raises
    ------
    InputError
        Where the answers are not of the calibrator's kind.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.explore("new.jsonl", "answers.html", calibrator="C.json")
    """
    shown = shown_in(answers, calibrator, task, parts, reading)
    write_text(page(shown.page_data(number, seed)), output)
