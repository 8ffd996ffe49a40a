"""A plan for labelling: how many labels a guaranteed error rate needs.

`plan` simulates draws of labelled questions, from a calibrator's answers or from guesses of
accuracy and AUROC. Its `Plan` holds the table, and prints and draws it.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tracecal.calibrator.calibrator import Calibrator, calibrator_in
from tracecal.calibrator.guarantee import labelled_population
from tracecal.calibrator.page_frame import render_page
from tracecal.errors import InputError
from tracecal.fits.fit_settings import SEED
from tracecal.guarantees import forecast
from tracecal.statistics.percentages import confidence_text, percent, rate_text

CONFIDENCE = 0.9  # of a plan by guesses
AXIS_ENDS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # shares of kept answers

TEMPLATE = Path(__file__).with_name("plan.svg")


@dataclass(frozen=True)
class Plan:
    """How often an error rate can be guaranteed, by the number of labelled questions.

    Attributes
    ----------
    table : polars.DataFrame
        A row per number of ``questions``: the share of simulated draws with a guarantee
        (``guaranteed``), and the share of answers kept, ``median``, ``low`` and ``high`` (80 % of
        the draws lie between these); and the median share that nobody checks with the rate as
        overall error rate (``unchecked``).
    error_rate, confidence : float
        The guarantee.
    text : str
        What ``tracecal plan`` prints; also ``str(plan)``.
    at_hand : int
        How many labelled questions the calibrator has, where it does not guarantee the rate.
    """

    table: pl.DataFrame
    error_rate: float
    confidence: float
    text: str
    at_hand: int = 0

    def __str__(self) -> str:
        return self.text

    def picture(self) -> str:
        """Draw the table as SVG.

        Examples
        --------
        >>> import tracecal
        >>> plan = tracecal.plan(0.3, accuracy=0.9, auroc=0.8, most=50, draws=5)
        >>> plan.picture()[:4]
        '<svg'
        """
        return draw_plan(self.table, self.error_rate, self.confidence, self.at_hand)

    def _repr_svg_(self) -> str:
        return self.picture()


def plan(
    error_rate: float,
    *,
    calibrator: str | Path | Calibrator | None = None,
    accuracy: float | None = None,
    auroc: float | None = None,
    confidence: float | None = None,
    most: int = forecast.MOST,
    draws: int = forecast.DRAWS,
    seed: int = SEED,
) -> Plan:
    """Say how many labels a guaranteed error rate needs.

    Labelling is simulated: with the labelled answers of a calibrator, or with guesses of accuracy
    and AUROC. A question counts as often as in the calibrator's guarantees.

    Parameters
    ----------
    error_rate : float
        Target error rate of the answers kept.
    calibrator : path or Calibrator, optional
        Calibrator whose labelled answers are drawn from.
    accuracy : float, optional
        Without a calibrator: a guess of the share of right answers.
    auroc : float, optional
        Without a calibrator: a guess of how well the confidence ranks them.
    confidence : float, optional
        Confidence of the guarantee (default: the calibrator's, or 0.9).
    most : int
        Largest number of labelled questions to try.
    draws : int
        Simulated draws of each number.
    seed : int
        Seed of the draws.

    Returns
    -------
    Plan
        Its text is what ``tracecal plan`` prints, `Plan.picture` draws it.

    Raises
    ------
    InputError
        If neither both guesses nor a calibrator are given, or a setting is out of range.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.plan(0.3, accuracy=0.9, auroc=0.8, most=50, draws=5).table.height
    1
    """
    population: forecast.Population
    usual_confidence = CONFIDENCE
    if calibrator is not None and accuracy is None and auroc is None:
        loaded = calibrator_in(calibrator)
        estimator = loaded.file.estimators[loaded.recommended]
        population = labelled_population(estimator, loaded.where, error_rate)
        if estimator.risk_control is not None:
            usual_confidence = estimator.risk_control.confidence
    elif calibrator is None and accuracy is not None and auroc is not None:
        population = forecast.BinormalPopulation(accuracy, auroc)
    else:
        raise InputError("give either --calibrator, or --accuracy and --auroc as guesses.")
    confidence = usual_confidence if confidence is None else confidence
    (table,) = forecast.forecast_tables(population, [error_rate], confidence, most, draws, seed)
    n_to_ask = forecast.labels_to_ask(population, error_rate, confidence, draws, seed)
    text = format_plan(population, table, error_rate, confidence, n_to_ask)
    return Plan(table, error_rate, confidence, text, population.at_hand)


def format_plan(
    population: forecast.Population,
    table: pl.DataFrame,
    error_rate: float,
    confidence: float,
    n_to_ask: int | None,
) -> str:
    """Format the table and the number of labels needed for a terminal."""
    few = forecast.describe_few(table, error_rate)
    lines = [
        *([few, ""] if few else []),
        f"At most {rate_text(error_rate)} wrong {confidence_text(confidence)}:",
        f"{'labelled questions':>18}{'guaranteed in':>15}{'share kept, median':>20}"
        f"{'80 % of draws':>16}{'unchecked':>11}",
    ]
    for row in table.iter_rows(named=True):
        draws = f"{percent(row['low'])} to {percent(row['high'])}"
        unchecked = "-" if row["unchecked"] is None else percent(row["unchecked"])
        lines.append(
            f"{row['questions']:>18,}{percent(row['guaranteed']):>15}"
            f"{percent(row['median']):>20}{draws:>16}{unchecked:>11}"
        )
    return "\n".join(
        [*lines, "", forecast.describe_forecast(population, table, error_rate, n_to_ask)]
    )


def draw_plan(table: pl.DataFrame, error_rate: float, confidence: float, at_hand: int = 0) -> str:
    """Draw the share of kept answers over the number of labelled questions, as SVG.

    A line for the median, a band for 80 % of the draws, and the number of questions needed.
    """
    rows, needed = table.to_dicts(), forecast.questions_needed(forecast.POWER, table, at_hand)
    first, last = math.log(rows[0]["questions"]), math.log(rows[-1]["questions"])
    highest: float = table.select(pl.max("high")).item()
    top = next(end for end in AXIS_ENDS if end >= highest)

    def x(questions: float) -> float:
        return round(65 + 380 * (math.log(questions) - first) / max(last - first, 1e-9), 1)

    def y(share: float) -> float:
        return round(232 - 184 * share / top, 1)

    def points(column: str) -> list[str]:
        return [f"{x(row['questions'])},{y(row[column])}" for row in rows]

    title = f"Answers kept with at most {rate_text(error_rate)} wrong {confidence_text(confidence)}"
    subject, label_x = f"not even {rows[-1]['questions']:,}", 257.0
    if needed is not None:
        subject, label_x = f"{forecast.rounded_count(needed):,}", x(needed)
    quarters = [top * share for share in (0, 0.25, 0.5, 0.75, 1)]
    return render_page(
        TEMPLATE,
        title,
        label=f"{subject} suffice in {percent(forecast.POWER)} of the draws",
        label_x=label_x,
        anchor="start" if label_x < 170 else "end" if label_x > 350 else "middle",
        needed=needed,
        rows=rows,
        ticks=[(y(share), percent(share, 1)) for share in quarters],
        x=x,
        y=y,
        line=" ".join(points("median")),
        band=" ".join([*points("high"), *reversed(points("low"))]),
    )
