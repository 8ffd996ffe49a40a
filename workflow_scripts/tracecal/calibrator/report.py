"""The report of `tracecal calibrate`: how well each estimator predicts, what is guaranteed, what to
do, and what to type next; as text, and as a page that loads nothing.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import betaincinv, expit, logit, ndtri

from tracecal.answers.reading import Reading
from tracecal.calibration import forecast, resampling
from tracecal.calibration.calibration_error import bin_index
from tracecal.calibration.fits import from_json
from tracecal.calibration.proper_scores import weighted_brier
from tracecal.calibration.ranking import auroc_within
from tracecal.calibrator.fitting import FitSettings, Labelled
from tracecal.calibrator.schema import (
    DEFAULT,
    LABELS,
    default_estimator,
    default_of,
    resting_on,
)
from tracecal.estimators.registry import LOG_RIDGE_ALSO
from tracecal.pages.page import render_page

# Intervals come from fewer resamples where they would draw more answers than this.
MOST_DRAWN, FEWEST_RESAMPLES = 4_000_000, 200
USUAL = 0.2  # the error rate that is recommended where it is guaranteed
QUALITY = {
    "estimator": pl.String,
    "n": pl.Int64,
    **{
        f"{metric}{end}": pl.Float64
        for metric in ("brier", "auroc", "gap", "ece")
        for end in ("", "_low", "_high")
    },
    "distinct": pl.Int64,
}
GUARANTEES = {
    "error_rate": pl.Float64,
    "threshold": pl.Float64,
    "coverage": pl.Float64,
    "error": pl.Float64,
}


class Found(NamedTuple):
    """What is told of a calibrator.

    `stored` is its file's content, `estimator` the recommended one; `predicted` are the
    probabilities of `Labelled.cross_fitted`, `measured` and `error_rates` the tables of `quality`
    and `guarantees`, `pictures` what the page draws, `level` that of its intervals; `outlook` says
    what a guarantee would need, null where every error rate has one.
    """

    stored: Mapping[str, Any]
    estimator: str
    predicted: pl.DataFrame
    measured: pl.DataFrame
    error_rates: pl.DataFrame
    pictures: Mapping[str, Any]
    level: float
    outlook: str | None


def found(stored: Mapping[str, Any], known: Labelled, settings: FitSettings) -> Found:
    """Measure a calibrator by the answers that it was fitted on, held out in turn."""
    estimator, predicted = default_estimator(stored), known.cross_fitted(settings)
    error_rates = guarantees(stored[estimator]["risk_control"])
    share = settings.splits.calibration_share
    return Found(
        stored,
        estimator,
        predicted,
        quality(known, predicted, settings),
        error_rates,
        pictures(known, predicted, stored[estimator], estimator, error_rates),
        settings.bootstrap.level,
        forecast.describe_outlook(
            stored[default_estimator(stored)], error_rates, share, settings.seed
        ),
    )


def quality(known: Labelled, predicted: pl.DataFrame, settings: FitSettings) -> pl.DataFrame:
    """Columns of `QUALITY`, a row per estimator, smallest Brier score first, by the probabilities
    `predicted` (`Labelled.cross_fitted`).

    By cross-fitting over whole groups, of the answers that no estimator is chosen by: those outside
    the calibration part of the first split. Intervals by resampling groups. `gap` is the mean
    probability minus the share correct; `distinct` counts the different probabilities. AUROC ranks
    the score itself where a fit is of one, and else the probability, among answers of one fold.
    """
    reported = known.first_split.filter(part="evaluation")
    labels = known.frame.join(reported, on="example_id", how="semi")
    most = max(FEWEST_RESAMPLES, MOST_DRAWN // max(1, labels.height))
    resamples = min(settings.bootstrap.resamples, most)
    drawn = resampling.draw_counts(labels["group_id"].to_list(), settings.seed, resamples)
    counts = np.vstack([np.ones(labels.height), drawn])
    places = labels.with_row_index("place")
    rows = []
    for (name,), own in predicted.group_by("estimator"):
        (first, *more) = known.estimators[name]
        by_score = first.startswith("scores.") and not more
        needed = places.select("example_id", "place", "correct", score=first)
        joined = own.join(needed, on="example_id", validate="1:1").sort("place")
        ranking = {"fold": pl.lit(0)} if by_score else {"score": "probability"}
        rows.append(_row(name, joined.with_columns(**ranking), counts, settings))
    return pl.DataFrame(rows, schema=QUALITY).sort(pl.col("brier").round(12), "estimator")


def _row(
    name: str, answers: pl.DataFrame, counts: np.ndarray, settings: FitSettings
) -> dict[str, Any]:
    probability, correct = answers["probability"].to_numpy(), answers["correct"].to_numpy()
    counts, fold = counts[:, answers["place"].to_numpy()], answers["fold"].to_numpy()
    bins = settings.calibration.ece_bins
    index = bin_index(probability, bins)
    # Of each bin: the weighted sum of correct minus probability, [resamples, bins].
    gaps = counts @ (np.eye(bins)[index] * (correct - probability)[:, None])
    totals = counts.sum(axis=1)
    values = {
        "brier": weighted_brier(probability, correct, counts),
        "auroc": auroc_within(answers["score"].to_numpy(), correct, counts, fold),
        "gap": -gaps.sum(axis=1) / np.maximum(totals, 1),
        "ece": np.abs(gaps).sum(axis=1) / np.maximum(totals, 1),
    }
    row: dict[str, Any] = {"estimator": name, "n": answers.height}
    for metric, (observed, *resampled) in values.items():
        of = _ranking_interval if metric == "auroc" else _interval
        low, high = of(observed, resampled, settings.bootstrap.level)
        row |= {metric: _defined(observed), f"{metric}_low": low, f"{metric}_high": high}
    return row | {"distinct": answers["probability"].n_unique()}


def _interval(
    observed: float, resampled: Sequence[float], level: float
) -> tuple[float | None, float | None]:
    return resampling.interval(resampled, level)[:2]


def _ranking_interval(
    observed: float, resampled: Sequence[float], level: float
) -> tuple[float | None, float | None]:
    """Normal on the scale of log odds, by the spread of the resamples: with few wrong answers their
    percentiles are too narrow near 1. Percentiles where the log odds are not finite.
    """
    low, high = _interval(observed, resampled, level)
    if low is None or not 0 < observed < 1:
        return low, high
    spread = np.nanstd(resampled) / (observed * (1 - observed))
    reach = ndtri((1 + level) / 2) * spread
    ends = expit(logit(observed) + np.array([-reach, reach]))
    return float(ends[0]), float(ends[1])


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def guarantees(control: Mapping[str, Any]) -> pl.DataFrame:
    """Columns of `GUARANTEES`, a row per target error rate, from an estimator's `risk_control`."""
    rows = []
    for entry in control["thresholds"]:
        holds = entry["threshold"] is not None
        rows.append(
            {
                "error_rate": entry["error_rate"],
                "threshold": entry["threshold"],
                "coverage": entry["coverage"] if holds else None,
                "error": entry["error"],
            }
        )
    return pl.DataFrame(rows, schema=GUARANTEES)


def summary(found: Found, typed: Sequence[tuple[str, str]]) -> str:
    """The report as lines of text for a terminal; `typed` are the `commands` to type next."""
    fitted_on, estimator = found.stored["fitted_on"], found.estimator
    model = fitted_on["model"] or "an unnamed model"
    lines = [
        f"{fitted_on['n']} labelled answers of {model} to {fitted_on['task']}, "
        f"{fitted_on['base_rate']:.1%} correct; entropies: {fitted_on['entropy']}",
        "",
        f"Measured on the {found.measured['n'].max()} of them that did not choose the estimator:",
        "",
        f"{'estimator':34}{'Brier':>20}{'AUROC':>20}{'mean - correct':>22}{'ECE':>8}",
    ]
    lines += [
        f"{LABELS[row['estimator']]:34}{_with_ends(row, 'brier'):>20}"
        f"{_with_ends(row, 'auroc'):>20}{_with_ends(row, 'gap'):>22}{_number(row['ece']):>8}"
        + "".join(f"  {note}" for note in notes(row, estimator))
        for row in found.measured.iter_rows(named=True)
    ]
    control = found.stored[estimator]["risk_control"]
    lines += ["", f"Guaranteed error rates of {LABELS[estimator]}, {holding(control)}:"]
    lines += [guaranteed(row) for row in found.error_rates.iter_rows(named=True)]
    for paragraph in recommendation(found):
        lines += ["", paragraph]
    lines += ["", "Next:"] if typed else []
    lines += [f"  {command}\n      {what}" for what, command in typed]
    return "\n".join(lines)


def recommendation(found: Found) -> list[str]:
    """What to do with the calibrator, in paragraphs, first the decision: whether to keep answers
    by it, by which estimator, and what more labels would bring.
    """
    fitted_on, rate = found.stored["fitted_on"], recommended(found.error_rates)
    wrong = f"Of all labelled answers {1 - fitted_on['base_rate']:.0%} are wrong."
    if rate is None:
        highest = found.error_rates["error_rate"].max()
        none = f"no error rate up to {highest:.0%} is guaranteed" if highest else "none is tested"
        headline = f"Do not yet keep answers by these probabilities: {none}."
        more = f"{wrong} The probabilities still say which answers to look at first."
    else:
        row = found.error_rates.row(by_predicate=pl.col("error_rate") == rate, named=True)
        confidence = found.stored[found.estimator]["risk_control"]["confidence"]
        headline = (
            f"Keep answers with --error-rate {rate:g}: about {row['coverage']:.0%} of answers like "
            f"these are kept, and at most {rate:.0%} of the kept ones are wrong, with "
            f"{confidence:.0%} confidence."
        )
        fixed = (
            f"{rate:.0%} was fixed before the labels were seen"
            if rate == USUAL
            else (f"{USUAL:.0%}, fixed before the labels were seen, is not guaranteed")
        )
        more = (
            f"{wrong} {fixed}. Each guarantee holds by itself: take the rate that your use asks "
            "for, not the strictest of several that happen to be guaranteed."
        )
    return [
        headline,
        more,
        advice(fitted_on, default_of(found.stored)),
        *_resting_on(found),
        *([found.outlook] if found.outlook else []),
    ]


def _resting_on(found: Found) -> list[str]:
    """What the recommended fit needs beside the trace, in a paragraph; none where it needs none."""
    also = [one["name"] for one in found.stored["fitted_on"].get("also", ())]
    if not also or found.estimator != LOG_RIDGE_ALSO.id:
        return []
    return [
        f"Its probabilities and guarantees rest on {resting_on(also)}: an answer that lacks one of "
        "them has no probability."
    ]


def recommended(error_rates: pl.DataFrame) -> float | None:
    """USUAL where `guarantees` has it, else the nearest laxer rate that is guaranteed, else the
    laxest stricter one; null where none is. The strictest would be chosen by what came out.
    """
    rates = error_rates.filter(pl.col("threshold").is_not_null())["error_rate"]
    return rates.filter(rates >= USUAL).min() or rates.max()


def commands(
    found: Found,
    answers: str,
    calibrator: str,
    given: Mapping[str, Any],
    explorer: str | None = None,
    task: str | None = None,
) -> list[tuple[str, str]]:
    """What may be typed next, as pairs of what it does and the command.

    `answers`, `calibrator` and `explorer` are the files' paths as they were typed, `given` the
    options of `Reading` with which the answers were read, `task` the one that they name themselves.
    """
    rate, fitted_on = recommended(found.error_rates), found.stored["fitted_on"]
    kept = [] if rate is None else ["--error-rate", f"{rate:g}"]
    named = [] if task in (None, fitted_on["task"]) else ["--task", fitted_on["task"]]
    new = f"new{Path(answers).suffix or '.jsonl'}"
    by = ["--calibrator", calibrator]
    reading, of_new = flags(given), flags({**given, "label": None})
    shown = explorer or f"{Path(answers).stem}.answers.html"
    rows = []
    if rate is None:
        missing = found.error_rates["error_rate"].max()
        plan = ["plan", *by, "--error-rate", f"{missing or 0.1:g}"]
        more = ["label", new, *of_new, *by, *named]
        rows += [("how many labels a guarantee needs", plan), ("label further answers", more)]
    scored = ["score", "--answers", new, *of_new, *by, *named, *kept, "--output", "scored.jsonl"]
    explored = ["explore", "--answers", answers, *reading, *by, *named, "--output", shown]
    rows += [
        (
            "a probability for each new answer" + (", and whether to keep it" if kept else ""),
            scored,
        ),
        ("look at the labelled answers", explored),
    ]
    if not fitted_on.get("parts"):
        served = found.estimator != LOG_RIDGE_ALSO.id  # servers give no columns of a user's own
        state = f"{Path(calibrator).stem}.db"
        watch = ["watch", "--answers", new, *of_new, *by, *named, *kept, "--state", state]
        of_server = {
            one: given.get(one) for one in ("vocabulary", "model", "stop_token", "processed")
        }
        serve = ["serve", "--upstream", "http://localhost:8000", *by, *kept, *flags(of_server)]
        rows += [
            ("hear when new answers are no longer like these", watch),
            *[("a proxy that adds the probability to a server's answers", serve)] * served,
        ]
    return [(what, shlex.join(["tracecal", *words])) for what, words in rows]


def flags(given: Mapping[str, Any]) -> list[str]:
    """Options of `Reading` as they are typed; those that are as usual are left out."""
    flags = []
    for name, field in Reading.model_fields.items():
        value = given.get(name)
        if value in (None, "") or value == field.get_default():
            continue
        if isinstance(value, Mapping):
            value = [f"{one}={path}" for one, path in value.items()]
        values = [] if value is True else value if isinstance(value, list) else [str(value)]
        flags += [f"--{name.replace('_', '-')}", *values]
    return flags


def guaranteed(row: Mapping[str, Any]) -> str:
    """One target error rate, as a sentence."""
    target = f"  at most {row['error_rate']:.0%} incorrect:"
    if row["threshold"] is not None:
        return f"{target} keeps {row['coverage']:.0%} of the answers ({row['error']:.1%} observed)"
    return f"{target} cannot be guaranteed"


def holding(control: Mapping[str, Any]) -> str:
    """With what an estimator's guarantees hold, from its `risk_control`."""
    most = control["largest_group"]
    counted = f"; a group counts with at most {most} answers" if most > 1 else ""
    return f"each with confidence {control['confidence']:g}{counted}"


def notes(row: Mapping[str, Any], estimator: str) -> list[str]:
    """What is to be said of an estimator's row of `quality`, where `estimator` is recommended."""
    recommended = ["recommended"] if row["estimator"] == estimator else []
    return recommended + (["few different values"] if 2 * row["distinct"] < row["n"] else [])


def advice(fitted_on: Mapping[str, Any], default: str = DEFAULT) -> str:
    """Which estimator to use, and why that one and not the `default`."""
    estimator, gain = fitted_on["estimator"], fitted_on.get("gain")
    use = f"Use {LABELS[estimator]}, as 'tracecal score' does (--estimator {estimator})"
    usual = LABELS[default]
    if estimator == default:
        return f"{use}: it was fixed beforehand, and no other is better by more than its interval."
    if gain is None:
        return f"{use}: {usual} gives these answers one probability, or cannot be computed."
    return (
        f"{use}: on labels that neither this table nor a guarantee counts, its Brier score is "
        f"{gain[0]:.3f} lower than that of {usual}, which is used otherwise (interval "
        f"{gain[1]:.3f} to {gain[2]:.3f}, for all estimators at once)."
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _with_ends(row: Mapping[str, Any], metric: str) -> str:
    if row[f"{metric}_low"] is None:
        return _number(row[metric])
    return f"{row[metric]:.3f} [{row[f'{metric}_low']:.2f}, {row[f'{metric}_high']:.2f}]"


# The page: pictures by hand, without a script and without anything from elsewhere.


BINS, FEWEST_IN_BIN, MOST_BINS = 20, 12, 10
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 340, 236, 40, 10, 12, 38
RATES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # of wrong answers, at which an axis may end


def pictures(
    known: Labelled,
    predicted: pl.DataFrame,
    fits: Mapping[str, Any],
    estimator: str,
    error_rates: pl.DataFrame,
) -> dict[str, Any]:
    """What is drawn of an estimator, of the answers that no estimator is chosen by.

    `bins`: of equally many answers mean probability, share correct and its 95 % interval; `scores`:
    right and wrong answers by probability, in units of twice the `most`; both `predicted`. `curve`:
    share kept and share wrong of the kept, by the fit that thresholds are tested for, those of
    `error_rates`; `top` is the share at which that axis ends.
    """
    reported = known.first_split.filter(part="evaluation").select("example_id")
    own = known.frame.join(reported, on="example_id", how="semi")
    held_out = predicted.filter(estimator=estimator).select("example_id", "probability")
    rows = own.join(held_out, on="example_id", validate="1:1").sort("probability", "example_id")
    count = max(1, min(MOST_BINS, rows.height // FEWEST_IN_BIN))
    bins = [_bin(rows[part]) for part in np.array_split(np.arange(rows.height), count) if len(part)]
    index = bin_index(rows["probability"].to_numpy(), BINS)
    right = rows["correct"].to_numpy()
    columns = known.estimators[estimator]
    tested = own.drop_nulls(columns)
    fitted = from_json(fits["splits"][str(known.first_split["split"].min())])
    curve = _curve(fitted.predict(tested.select(columns).to_numpy()), tested["correct"].to_numpy())
    marks = error_rates.drop_nulls("threshold")
    highest = max([0.0, *(wrong for _, wrong in curve[-1:]), *marks["error_rate"]])
    top = next(top for top in RATES if top >= highest)
    counts = [np.bincount(index[kind], minlength=BINS) for kind in (right, ~right)]
    most = max(1, int(np.max(counts)))
    return {
        "bins": bins,
        "scores": (np.transpose(counts) / (2 * most)).tolist(),
        "most": most,
        "curve": " ".join(f"{across(kept)},{up(min(1, wrong / top))}" for kept, wrong in curve),
        "top": top,
        "marks": marks.rows(named=True),
        "n": rows.height,
    }


def _bin(rows: pl.DataFrame) -> dict[str, float]:
    """The interval is Clopper and Pearson's, of as many answers as there are questions."""
    n, share = rows["group_id"].n_unique(), float(rows["correct"].mean())
    hits = share * n
    low = float(betaincinv(hits, n - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 0.975)) if hits < n else 1.0
    return {"p": float(rows["probability"].mean()), "share": share, "low": low, "high": high}


def _curve(probability: np.ndarray, correct: np.ndarray) -> list[tuple[float, float]]:
    """Share kept and share wrong of the kept, at each different probability."""
    order = np.argsort(-probability, kind="stable")
    last = np.append(np.diff(probability[order]) != 0, True)
    kept = np.arange(1, len(order) + 1)
    wrong = np.cumsum(~correct[order]) / kept
    return [*zip((kept / len(order))[last].tolist(), wrong[last].tolist(), strict=True)]


def across(share: float) -> float:
    """Where a share from 0 to 1 is on the horizontal axis of a picture."""
    return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)


def up(share: float) -> float:
    """The same on the vertical axis."""
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)


def render(found: Found, typed: Sequence[tuple[str, str]], explorer: str | None = None) -> str:
    """The page; `typed` are the `commands` to type next, `explorer` the address of the labelled
    answers' own page.
    """
    control, drawn = found.stored[found.estimator]["risk_control"], found.pictures
    fitted_on = found.stored["fitted_on"]
    quarters = (0, 0.25, 0.5, 0.75, 1)
    return render_page(
        Path(__file__).with_name("report.html"),
        f"Calibrator of {fitted_on['model'] or 'an unnamed model'} for {fitted_on['task']}",
        fitted_on=fitted_on,
        estimator=found.estimator,
        recommendation=recommendation(found),
        explorer=explorer,
        drawn=drawn,
        of_share=[(one, f"{100 * one:.0f}") for one in quarters],
        of_risk=[(one, f"{100 * one * drawn['top']:.3g}") for one in quarters],
        of_counts=[(0, drawn["most"]), (0.5, 0), (1, drawn["most"])],
        across=across,
        up=up,
        width=WIDTH,
        height=HEIGHT,
        typed=typed,
        holding=holding(control),
        labels=LABELS,
        notes=notes,
        guaranteed=[guaranteed(row).strip() for row in found.error_rates.iter_rows(named=True)],
        rows=list(found.measured.iter_rows(named=True)),
        level=found.level,
    )
