"""Fits where a model is nearly always sure, on made-up answers: the tables of docs/background/which_fit.md.

    PYTHONPATH=workflow_scripts:tests python -m benchmarks.saturated

Makes SETS of 1,200 answers of each kind and prints TRACE+'s Brier score and AUROC at 20, 50, 100 and
200 labels, and TRACE+ minus each other fit, as the analysis `few_labels` finds them, here as means
over the sets of a kind; * where the interval excludes zero. Draws docs/saturated.svg. Minutes.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import entr, expit, logit

from benchmarks.few_labels import cell
from trace_workflow.analyses import few_labels
from trace_workflow.figures import figure_style
from trace_workflow.tables.few_labels import LABELS
from tracecal.calibration.splits import make_splits
from tracecal.estimators.estimator import PICKED
from tracecal.estimators.registry import ESTIMATORS, ON_LOGARITHMS
from tracecal.estimators.trace_inputs import compute_inputs

ANSWERS, SETS, SPLITS, RESAMPLES, SEED = 1200, 3, 20, 500, 2026
BASELINES = ("seq_logp", "len_norm_logp", "mean_token_entropy", "length_alone")
FITS = ("trace_plus", *ON_LOGARITHMS, "trace_profile")
SHOWN = [*FITS, "seq_logp", "length_alone", PICKED]
USED = {one.id: one for one in ESTIMATORS if one.id in (*FITS, *BASELINES)}
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "saturated.svg"
DRAWN = [*ON_LOGARITHMS, PICKED]


def drawn(
    rng: np.random.Generator,
    *,
    level: float,
    spread: float,
    longest: int = 1,
    right: float = 0.75,
    told: float = 1.0,
    digits: int | None = None,
) -> pl.DataFrame:
    """Answers with traces. The logarithm of an answer's surprisals (nats) is about `level`, and
    the higher by `spread` the less sure the model is; the log-odds of being right, of a share
    `right` about, fall by `told` then.

    A token's entropy is that of it and one alternative, up to a factor. Log-probabilities are
    rounded to `digits`, as some servers do.
    """
    doubt = rng.normal(size=ANSWERS)
    correct = rng.random(ANSWERS) < expit(logit(right) - told * doubt)
    surprisals, entropies = [], []
    for own, length in zip(doubt, rng.integers(1, longest + 1, ANSWERS), strict=True):
        s = np.exp(np.minimum(level + spread * own + rng.normal(size=length), 2))
        h = (entr(np.exp(-s)) + entr(-np.expm1(-s))) * np.exp(0.5 * rng.normal(size=length))
        surprisals.append(s if digits is None else s.round(digits))
        entropies.append(h)
    return _frame(correct, surprisals, entropies)


def by_probability_alone(rng: np.random.Generator) -> pl.DataFrame:
    """Answers that are right with .9 times their probability: among those of nearly 1 a smaller
    surprisal says nothing more. Logarithms have nothing to gain."""
    s = np.exp(np.minimum(-7 + 3 * rng.normal(size=ANSWERS), 2))
    correct = rng.random(ANSWERS) < 0.9 * np.exp(-s)
    return _frame(correct, s[:, None], (entr(np.exp(-s)) + entr(-np.expm1(-s)))[:, None])


def _frame(correct: np.ndarray, surprisals: object, entropies: object) -> pl.DataFrame:
    ids = [f"a{place:04}" for place in range(ANSWERS)]
    lists = {
        name: pl.Series([list(one) for one in values], dtype=pl.List(pl.Float64))
        for name, values in (("surprisal", surprisals), ("entropy", entropies))
    }
    return pl.DataFrame({"example_id": ids, "group_id": ids, "correct": correct, **lists})


KINDS: dict[str, Callable[[np.random.Generator], pl.DataFrame]] = {
    "one token, saturated": lambda rng: drawn(rng, level=-7, spread=3),
    "the same, four decimals": lambda rng: drawn(rng, level=-7, spread=3, digits=4),
    "the same, tells little": lambda rng: drawn(rng, level=-7, spread=3, told=0.3),
    "the same, misleads": lambda rng: drawn(rng, level=-7, spread=3, told=-0.3),
    "one token, by its probability alone": by_probability_alone,
    "up to 8 tokens, saturated": lambda rng: drawn(rng, level=-6, spread=2, longest=8),
    "up to 30 tokens, ordinary": lambda rng: drawn(rng, level=-1, spread=0.7, longest=30),
}


def measured(kind: str, sets: int = SETS, resamples: int = RESAMPLES) -> pl.DataFrame:
    """The rows of `few_labels` of the `sets` of a kind, as if they were the tasks of one model."""
    estimators = {name: one.inputs for name, one in USED.items()}
    own_fits = {name: one.fit for name, one in USED.items() if one.fit}
    columns = sorted({column for names in estimators.values() for column in names})
    rows = []
    for number in range(sets):
        answers = KINDS[kind](np.random.default_rng([SEED, number]))
        groups = answers.select("example_id", "group_id")
        known = answers.select("example_id", "group_id", "correct")
        rows.append(
            few_labels.resample_sizes(
                known.join(compute_inputs(answers, columns), on="example_id", validate="1:1"),
                make_splits(groups, str(number), SEED, SPLITS, 0.35),
                model=kind,
                task=str(number),
                estimators=estimators,
                own_fits=own_fits,
                row_ids=SHOWN,
                baselines=BASELINES,
                method="platt",
                seed=SEED,
                resamples=resamples,
            )
        )
    return few_labels.few_labels(pl.concat(rows), SHOWN, BASELINES, 0.95)


def line(kind: str, found: pl.DataFrame, metric: str) -> str:
    """A line of Markdown: in each cell the numbers at SIZES, TRACE+'s own in the first."""
    means = found.filter(pl.col("task").is_null(), metric=metric).sort("labels")
    own = means.filter(estimator="trace_plus")["value"]
    cells = [" ".join(f"{value:.3f}".removeprefix("0") for value in own)]
    for name in SHOWN[1:]:
        rows = means.filter(estimator=name).iter_rows(named=True)
        cells.append(" ".join(map(cell, rows)))
    return f"| {kind} | {' | '.join(cells)} |"


# The picture: how much better than TRACE+ others are, on three of the kinds.


PANELS = {
    "one token, saturated": "Saturated: small\ndoubts say something",
    "one token, by its probability alone": "Saturated: small\ndoubts say nothing",
    "up to 30 tokens, ordinary": "Ordinary answers,\nup to 30 tokens",
}
CAPTION = (
    "On three kinds of made-up answers, by the number of labelled answers: the Brier score of TRACE+ "
    "minus that of three fits on logarithms and of the baseline selected on the same labels, with "
    "95 % intervals. Above 0, the other is better than TRACE+."
)
APART = 1.07  # the factor between neighbours at one number of labels


def picture(found: Mapping[str, pl.DataFrame], labels: Mapping[str, str]) -> Figure:
    """A panel for each of PANELS, from the rows of `measured`: TRACE+'s Brier score minus that of
    the fits on logarithms and of the selected baseline, with intervals.
    """
    gains = {kind: gained(found[kind]) for kind in PANELS}
    looks = {name: figure_style.FITS[name] for name in ON_LOGARITHMS}
    looks |= {PICKED: figure_style.OTHER._replace(color=figure_style.MUTED)}
    with figure_style.applied():
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, 3.2))
        panels = figure.subplots(1, len(PANELS), sharey=True)
        for axes, letter, (kind, title) in zip(panels, "abc", PANELS.items(), strict=True):
            _panel(axes, gains[kind], looks)
            figure_style.panel_title(axes, letter, title)
        panels[0].set_ylabel("Brier score: better\nthan TRACE+ by")
        keys = [figure_style.key(f" {labels[name]}", looks[name], "-") for name in DRAWN]
        figure_style.legend(figure, keys)
        figure_style.message(figure, told(gains, labels))
    return figure


def gained(rows: pl.DataFrame) -> pl.DataFrame:
    """By how much each of DRAWN has a smaller Brier score than TRACE+: `gain`, `low`, `high`."""
    means = rows.filter(pl.col("task").is_null(), metric="brier")
    return means.filter(pl.col("estimator").is_in(DRAWN)).select(
        "estimator", "labels", gain=-pl.col("difference"), low=-pl.col("high"), high=-pl.col("low")
    )


def told(gains: Mapping[str, pl.DataFrame], labels: Mapping[str, str]) -> str:
    """What the picture says: how the best fit for the first of PANELS does there, and in the second."""
    first, second = (gains[kind].filter(labels=200) for kind in list(PANELS)[:2])
    fits = first.filter(pl.col("estimator").is_in(ON_LOGARITHMS))
    best = fits.sort("gain", "estimator").row(-1, named=True)
    there = second.filter(estimator=best["estimator"])["gain"].item()
    return (
        f"On saturated answers {labels[best['estimator']].lower()} {_against(best['gain'])} TRACE+ by "
        f"{abs(best['gain']):.3f} with 200 labels; where small doubts say nothing it "
        f"{_against(there)} it by {abs(there):.3f}"
    )


def _against(gain: float) -> str:
    return "beats" if gain > 0 else "loses to"


def _panel(axes: Axes, gains: pl.DataFrame, looks: Mapping[str, figure_style.Look]) -> None:
    axes.axhline(0, color=figure_style.MUTED, lw=0.8)
    for place, (name, look) in enumerate(looks.items()):
        own = gains.filter(estimator=name).sort("labels")
        across = own["labels"] * APART ** (place - (len(looks) - 1) / 2)
        axes.vlines(across, own["low"], own["high"], color=look.color, lw=1)
        axes.plot(across, own["gain"], ls="-", **figure_style.point(look))
    axes.set_xscale("log")
    axes.set_xticks(few_labels.SIZES, map(str, few_labels.SIZES))
    axes.minorticks_off()
    axes.grid(axis="y")
    axes.set_xlabel("labelled answers", fontsize=figure_style.SMALL, color=figure_style.MUTED)


def main() -> int:
    labels = {name: one.label for name, one in USED.items()} | LABELS
    found = {kind: measured(kind) for kind in KINDS}
    for metric in few_labels.METRICS:
        print(f"\n| {metric} | TRACE+ | {' | '.join(labels[name] for name in SHOWN[1:])} |")
        print("|---" * (len(SHOWN) + 1) + "|")
        print("\n".join(line(kind, rows, metric) for kind, rows in found.items()))
    with tempfile.TemporaryDirectory() as folder:
        pdf = Path(folder) / "drawn.pdf"
        figure_style.save(picture(found, labels), pdf, PICTURE, "Saturated models", CAPTION)
    print(f"\ndrawn in {PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
