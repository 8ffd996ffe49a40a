"""What a guaranteed error rate keeps with few labels, before and after the line: docs/background/guarantees.md.

    PYTHONPATH=workflow_scripts:tests python -m benchmarks.guarantees FILE...

Each FILE is a set of labelled answers as `tracecal.read_answers` gives them, in Parquet: `surprisal`,
`entropy`, `correct` and `group_id`; of each group one answer counts. Draws 50 to 1,000 of them as
labelled ones; the others' labels are the truth. Prints a row for each target and number of labels: for
each way the share of answers kept, the mean over sets, in brackets in how many draws more than the
target is wrong, and the way less the first with its 95 % interval over sets.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import logit

from tracecal.calibration.groups import FIT_SHARE
from tracecal.calibration.guarantees.error_rate import find_thresholds, fitted_sequence
from tracecal.calibration.guarantees.fixed_score import fit_fixed_score
from tracecal.calibration.guarantees.parts import betting_test
from tracecal.calibration.mixture import fit_mixtures
from tracecal.calibration.regression import fit_all, fit_prior_ridge, fit_ridge
from tracecal.estimators.registry import ESTIMATORS
from tracecal.estimators.trace_inputs import compute_inputs

LEVEL, RATES, LABELS, DRAWS = 0.1, (0.1, 0.2, 0.3), (50, 100, 200, 400, 1000), 6
SPLIT_SHARE = 0.35
FITS = ("log_ridge", "stack_of_six", "log_trace_plus", "mean_of_three", "surprisal_ridge")
INPUTS = {e.id: e.inputs for e in ESTIMATORS if e.id in FITS}
# A fit needs so many right and wrong answers, else the fixed score ranks.
MIN_OF_CLASS = 3
FIRST_FITTED = 100  # fewer labels are ranked by the fixed score


@dataclass(frozen=True)
class AnswerSet:
    """Answers with inputs, one of each group."""

    inputs: pl.DataFrame
    correct: np.ndarray

    def columns(self, names: list[str]) -> np.ndarray:
        return self.inputs.select(names).to_numpy()


@dataclass(frozen=True)
class Draw:
    """The indices of the labelled answers of a draw, in random order, and of all others."""

    answers: AnswerSet
    labelled: np.ndarray
    others: np.ndarray
    rng: np.random.Generator


# An error rate -> which of the other answers are kept; and the labelled answers of a fit -> the
# probability of all.
Kept = Callable[[float], np.ndarray]
Fit = Callable[[Draw, np.ndarray], np.ndarray]


def read_set(path: Path) -> AnswerSet:
    answers = pl.read_parquet(path)
    group = pl.coalesce("group_id", "example_id")
    answers = (
        answers.filter(pl.col("correct").is_not_null())
        .unique(group, keep="first")
        .sort("example_id")
    )
    names = sorted({name for inputs in INPUTS.values() for name in inputs})
    inputs = compute_inputs(answers, names)
    present = [name for name in names if inputs[name].null_count() < answers.height]
    complete = pl.all_horizontal(pl.col(present).is_not_null())
    correct = answers["correct"].filter(inputs.select(complete).to_series()).to_numpy()
    return AnswerSet(inputs.filter(complete).select(present), correct)


def before(draw: Draw) -> Kept:
    """A fit on 35 % of the labels chooses the thresholds that bets on the others test."""
    n = round(SPLIT_SHARE * len(draw.labelled))
    proba, wrong = _ridge(draw, draw.labelled[:n]), ~draw.answers.correct
    fitted, tested = draw.labelled[:n], draw.labelled[n:]

    def kept(rate: float) -> np.ndarray:
        sequence = fitted_sequence(proba[fitted], wrong[fitted], len(tested), rate, LEVEL)
        excess = [
            (proba[part, None] >= sequence) * (wrong[part, None] - rate)
            for part in (tested, fitted)
        ]
        n_passed = int(np.cumprod(betting_test(*excess, rate, LEVEL)).sum())
        return proba[draw.others] >= (sequence[n_passed - 1] if n_passed else np.inf)

    return kept


def _line(
    draw: Draw,
    score: np.ndarray,
    tested: np.ndarray,
    unlabelled: bool,
    fitted: np.ndarray | None = None,
) -> Kept:
    wrong = ~draw.answers.correct[tested]
    others = score[draw.others] if unlabelled else score[:0]
    chooses = None if fitted is None else (score[fitted], ~draw.answers.correct[fitted])
    scores = score[tested], wrong, others

    def kept(rate: float) -> np.ndarray:
        (test,) = find_thresholds(*scores, [rate], LEVEL, with_forecast=False, fitted=chooses)
        threshold = test.threshold
        return score[draw.others] >= (np.inf if threshold is None else threshold)

    return kept


def _fixed_score(draw: Draw, unlabelled: bool) -> np.ndarray:
    rows = draw.answers.inputs[draw.others if unlabelled else []]
    return fit_fixed_score(rows).rank(draw.answers.inputs)


def _on_a_fifth(draw: Draw, fit: Fit, unlabelled: bool = True) -> Kept:
    """A fit on a fifth of the labels ranks, and the others test."""
    fits = draw.rng.random(len(draw.labelled)) < FIT_SHARE
    fitted, tested = draw.labelled[fits], draw.labelled[~fits]
    if np.bincount(draw.answers.correct[fitted], minlength=2).min() < MIN_OF_CLASS:
        return _line(draw, _fixed_score(draw, unlabelled), tested, unlabelled)
    return _line(draw, fit(draw, fitted), tested, unlabelled, fitted)


def after(draw: Draw, unlabelled: bool = True) -> Kept:
    """As `calibrate`: the fixed score below FIRST_FITTED labels, from there on the default fit.

    Of one-token answers without entropies the fixed score ranks throughout.
    """
    if len(draw.labelled) < FIRST_FITTED or _are_single_numbers(draw):
        return _line(draw, _fixed_score(draw, unlabelled), draw.labelled, unlabelled)
    return _on_a_fifth(draw, _default, unlabelled)


def _are_single_numbers(draw: Draw) -> bool:
    return not _has_entropies(draw) and draw.answers.inputs["features.log_length"].max() == 0


def _has_entropies(draw: Draw) -> bool:
    return set(INPUTS["mean_of_three"]) <= set(draw.answers.inputs.columns)


def _ridge(draw: Draw, fitted: np.ndarray) -> np.ndarray:
    """The log ridge; without entropies the surprisal ridge."""
    if _has_entropies(draw):
        return _logistic(draw, fitted, INPUTS["log_ridge"], fit_ridge)
    return _logistic(draw, fitted, INPUTS["surprisal_ridge"], fit_prior_ridge)


def _prior_ridge(draw: Draw, fitted: np.ndarray) -> np.ndarray:
    return _logistic(draw, fitted, INPUTS["log_ridge"], fit_prior_ridge)


def _logistic(draw: Draw, fitted: np.ndarray, inputs: Sequence[str], fit: Callable) -> np.ndarray:
    """The probability of all answers by a fit to the inputs that there are."""
    names = [name for name in inputs if name in draw.answers.inputs.columns]
    x, correct = draw.answers.columns(names), draw.answers.correct
    features = [name.split(".", 1)[1] for name in names]
    return fit([(x[fitted], correct[fitted])], features)[0].predict(x)


def _default(draw: Draw, fitted: np.ndarray) -> np.ndarray:
    """The mean of three; without entropies the surprisal ridge."""
    if not _has_entropies(draw):
        return _ridge(draw, fitted)
    correct, group = draw.answers.correct[fitted], np.arange(len(fitted))
    proba = [_ridge(draw, fitted)]
    stacked = INPUTS["stack_of_six"]
    x, features = draw.answers.columns(stacked), [name.split(".", 1)[1] for name in stacked]
    proba.append(fit_mixtures([(x[fitted], correct, group)], features)[0].predict(x))
    x = draw.answers.columns(INPUTS["log_trace_plus"])
    proba.append(fit_all([(x[fitted], correct)], "platt")[0].predict(x))
    return logit(np.clip(proba, 1e-12, 1 - 1e-12)).mean(axis=0)


WAYS: dict[str, Callable[[Draw], Kept]] = {
    "before": before,
    "after": after,
    "after, no unlabelled answers": lambda draw: after(draw, unlabelled=False),
    "fixed score": lambda draw: _line(draw, _fixed_score(draw, True), draw.labelled, True),
    "log ridge on a fifth": lambda draw: _on_a_fifth(draw, _ridge),
    "prior ridge on a fifth": lambda draw: _on_a_fifth(draw, _prior_ridge),
}


def outcomes(name: str, answers: AnswerSet, draws: int) -> Iterator[dict]:
    """A row per draw, number of labels, error rate and way."""
    n = len(answers.correct)
    for n_labels in LABELS:
        for number in range(draws) if n >= 1.5 * n_labels else ():
            order = np.random.default_rng([number, n_labels]).permutation(n)
            for way in WAYS:
                rng = np.random.default_rng([number, n_labels, 1])
                draw = Draw(answers, order[:n_labels], order[n_labels:], rng)
                kept = WAYS[way](draw)
                for rate in RATES:
                    mask = kept(rate)
                    wrong = ~answers.correct[draw.others][mask]
                    broken = bool(mask.any() and wrong.mean() > rate)
                    yield {
                        "set": name,
                        "labels": n_labels,
                        "rate": rate,
                        "way": way,
                        "kept": mask.mean(),
                        "broken": broken,
                        "said": bool(mask.any()),
                    }


def main(paths: list[str], draws: int = DRAWS) -> int:
    rows = [row for path in paths for row in outcomes(path, read_set(Path(path)), draws)]
    print_table(pl.DataFrame(rows))
    return 0


def print_table(frame: pl.DataFrame) -> None:
    """A row of Markdown for each target and number of labels of `outcomes`."""
    first, *others = WAYS
    print(f"| target | labels (sets) | {' | '.join(WAYS)} |")
    for (rate, n_labels), part in frame.group_by("rate", "labels", maintain_order=True):
        by_set = part.group_by("set", "way", maintain_order=True).agg(
            pl.col("kept", "broken").mean()
        )
        kept = by_set.pivot("way", index="set", values="kept")
        cells = []
        for way in WAYS:
            broken = by_set.filter(way=way)["broken"].mean()
            cell = f"{kept[way].mean():.3f} ({broken:.3f})"
            if way in others:
                gain = kept[way] - kept[first]
                half = 1.96 * (gain.std() or 0) / np.sqrt(kept.height)
                cell += f" {gain.mean():+.3f} ± {half:.3f}"
            cells.append(cell.replace("0.", "."))
        print(f"| {rate:g} | {n_labels} ({kept.height}) | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
