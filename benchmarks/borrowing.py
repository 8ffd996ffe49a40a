"""What a calibrator of an alike task or model is worth: the figures in docs/guides/targets.md.

    PYTHONPATH=workflow_scripts python -m benchmarks.borrowing FILE...

Each FILE is Parquet as recall.py reads it, with a set for each value of `pair`, or of `model` and `task`.
Each set borrows from the next one, in the order of names, with its model, with its task, or, where sets
are pairs of languages, of the file. The lender's calibrator is fitted on LENT labels. DRAWS times 20, 50
and 100 answers are labelled, whole groups at a time, and up to 1,000 others are the truth. Prints for
each file and kind of lender, with 95 % intervals over sets:

- the share kept at 10 and 20 % errors with `like` minus the share without it, and how often the kept
  answers of either have more errors;
- the Brier score of three probabilities minus that of the ridge on the set's labels: the lender's margin
  rescaled by a logistic regression that starts from slope 1; the mean of both and the base rate, weighted
  by the likelihood of each label under fits without it; and the same with weights by expectation
  maximisation. A quarter of an hour.
"""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import minimize
from scipy.special import expit, logit

import tracecal
from tracecal.answers.sources import answers_in
from tracecal.calibration.fits import Fit
from tracecal.calibration.ridge import INTERCEPT_DEVIATION, fit_prior_ridge
from tracecal.estimators.registry import ESTIMATORS
from tracecal.estimators.trace_inputs import compute_inputs
from tracecal.io.randomness import seeded

SIZES, DRAWS, LENT, MOST, RATES, SEED = (20, 50, 100), 4, 400, 1000, (0.1, 0.2), 2026
RIDGES = {e.id: e for e in ESTIMATORS if e.id in ("log_ridge", "surprisal_ridge")}
SLOPE_PENALTY = 4.0  # the slope of the lender's margin is normal around 1, with deviation 1/2
MIN_LIKELIHOOD, PSEUDO_ANSWERS = 1e-4, 5
EDGE = 1e-6  # of a lender's probability, whose logit is the margin


class LabelledSet(NamedTuple):
    """Answers of one model to one task: as given, and the inputs [n, d] of their ridge."""

    answers: pl.DataFrame
    x: np.ndarray
    ridge: str

    @property
    def y_true(self) -> np.ndarray:
        return self.answers["correct"].to_numpy()

    def without(self, groups: pl.Series) -> "LabelledSet":
        """The set without the answers of these groups."""
        is_other = ~self.answers["group"].is_in(groups.implode())
        return LabelledSet(self.answers.filter(is_other), self.x[is_other.to_numpy()], self.ridge)


def read_sets(path: Path) -> dict[tuple[str, ...], LabelledSet]:
    """The sets of a file with LENT + 100 answers and more, by their names."""
    rows = pl.read_parquet(path).drop_nulls("correct")
    keys = ["pair"] if "pair" in rows.columns else ["model", "task"]
    sets = {}
    for names, answers in sorted(rows.partition_by(keys, as_dict=True).items()):
        if answers.height >= LENT + 100:
            answers = answers.drop(keys)
            traces = answers_in(answers).frame
            has_entropies = traces["entropy"].null_count() == 0
            ridge = RIDGES["log_ridge" if has_entropies else "surprisal_ridge"]
            inputs = traces.select("example_id").join(
                compute_inputs(traces, ridge.inputs), on="example_id", maintain_order="left"
            )
            x = inputs.select(ridge.inputs).to_numpy()
            complete = np.isfinite(x).all(axis=1)
            sets[tuple(map(str, names))] = LabelledSet(
                answers.filter(complete), x[complete], ridge.id
            )
    return sets


def lenders(name: tuple[str, ...], names: list[tuple[str, ...]]) -> Iterator[tuple[str, tuple]]:
    """For each kind of likeness, the next set after `name` that has it."""
    following = names[names.index(name) + 1 :] + names[: names.index(name)]
    kinds = {"the same model": 0, "the same task": 1} if len(name) == 2 else {"another pair": None}
    for kind, place in kinds.items():
        for other in following:
            if place is None or other[place] == name[place]:
                yield kind, other
                break


def draw(answers: pl.DataFrame, size: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of labelled answers, whole groups until there are `size`, and of up to MOST others."""
    groups = answers["group"].unique().sort()
    order = seeded("borrowing", SEED, size, number).permutation(len(groups))
    rank = dict(zip(groups, order, strict=True))
    ranks = np.array([rank[group] for group in answers["group"]])
    places = np.argsort(ranks, kind="stable")
    is_labelled = ranks[places] <= ranks[places[size - 1]]
    return places[is_labelled], places[~is_labelled][:MOST]


def rescale(margin: np.ndarray, y_true: np.ndarray) -> np.ndarray:
    """Intercept and slope [2] of the logistic regression on a margin [n], pulled to 0 and 1."""

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        z, (prior_a, prior_b) = theta[0] + theta[1] * margin, (theta - [0, 1])
        error = expit(z) - y_true
        penalty = (prior_a / INTERCEPT_DEVIATION) ** 2 + SLOPE_PENALTY * prior_b**2
        gradient = np.array([error.sum(), (error * margin).sum()])
        gradient += [prior_a / INTERCEPT_DEVIATION**2, SLOPE_PENALTY * prior_b]
        return np.logaddexp(0, np.where(y_true, -z, z)).sum() + penalty / 2, gradient

    return minimize(loss, np.array([0.0, 1.0]), jac=True, method="L-BFGS-B").x


def probabilities(
    x: np.ndarray, y_true: np.ndarray, ridge: str, margin: np.ndarray, labelled: np.ndarray
) -> dict[str, np.ndarray]:
    """Probabilities [n] of all answers by each way, fitted on the `labelled` places."""
    names = [name.split(".", 1)[1] for name in RIDGES[ridge].inputs]
    x_fit, y_fit, m_fit, n = x[labelled], y_true[labelled], margin[labelled], len(labelled)
    without = [np.delete(np.arange(n), place) for place in range(n)]
    parts = [(x_fit, y_fit), *((x_fit[rest], y_fit[rest]) for rest in without)]
    fits: list[Fit] = fit_prior_ridge(parts, names)
    curves = [rescale(m_fit, y_fit), *(rescale(m_fit[rest], y_fit[rest]) for rest in without)]
    n_right = y_fit.sum()
    all_three = np.array(
        [
            fits[0].predict(x),
            expit(curves[0][0] + curves[0][1] * margin),
            np.full(len(x), (n_right + 0.5) / (n + 1)),
        ]
    )
    left_out = np.array(
        [
            [fit.predict(x_fit[[k]])[0] for k, fit in enumerate(fits[1:])],
            [expit(a + b * m) for (a, b), m in zip(curves[1:], m_fit, strict=True)],
            (n_right - y_fit + 0.5) / n,
        ]
    )
    likelihood = np.maximum(np.where(y_fit, left_out, 1 - left_out), MIN_LIKELIHOOD)
    evidence = np.log(likelihood).sum(axis=1)
    by_evidence = np.exp(evidence - evidence.max())
    return {
        "own": all_three[0],
        "rescaled margin": all_three[1],
        "mix by evidence": by_evidence / by_evidence.sum() @ all_three,
        "mix by maximisation": maximise(likelihood) @ all_three,
    }


def maximise(likelihood: np.ndarray) -> np.ndarray:
    """Weights [3] of a mixture, given each label's likelihood under its members, [3, n]."""
    weights = np.full(len(likelihood), 1 / len(likelihood))
    for _ in range(1000):
        share = weights[:, None] * likelihood
        share /= share.sum(axis=0)
        weights = share.sum(axis=1) + PSEUDO_ANSWERS / len(weights)
        weights /= weights.sum()
    return weights


def measure(path: Path) -> pl.DataFrame:
    """A row for each set, kind of lender, number of labels, draw, quantity and way."""
    sets, calibrators, rows = read_sets(path), {}, []
    for name, labelled_set in sets.items():
        for kind, other in lenders(name, [*sets]):
            lent = sets[other].answers.head(LENT)
            if other not in calibrators:
                calibrators[other] = tracecal.calibrate(lent, task=" ".join(other))
            lender = calibrators[other]
            borrower = labelled_set.without(lent["group"])  # two models may answer alike
            answers, y_true = borrower.answers, borrower.y_true
            proba = lender.score(answers.drop("correct"))["probability"].to_numpy()
            margin = logit(np.clip(proba, EDGE, 1 - EDGE))
            for size in SIZES:
                for number in range(DRAWS):
                    labelled, others = draw(answers, size, number)
                    case = (path.stem, kind, " ".join(name), size, number)
                    ways = probabilities(borrower.x, y_true, borrower.ridge, margin, labelled)
                    for way, values in ways.items():
                        brier = float(((values[others] - y_true[others]) ** 2).mean())
                        rows.append((*case, "brier", way, brier))
                    for way, like in (("own", None), ("like", lender)):
                        rows += [
                            (*case, *row)
                            for row in keep(answers[labelled], answers[others], way, like)
                        ]
    columns = ["file", "kind", "set", "labels", "draw", "quantity", "way", "value"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def keep(labelled: pl.DataFrame, others: pl.DataFrame, way: str, like) -> Iterator[tuple]:
    """The share kept at each rate, and whether more than that are wrong: `quantity`, way, value."""
    calibrator = tracecal.calibrate(labelled, task="t", error_rates=RATES, like=like)
    for rate in RATES:
        scored = calibrator.score(others.drop("correct"), error_rate=rate)
        is_kept = scored["keep"].fill_null(False).to_numpy()
        wrong = ~others["correct"].to_numpy()[is_kept]
        yield f"kept at {rate:g}", way, float(is_kept.mean())
        yield f"broken at {rate:g}", way, float(wrong.mean() > rate) if len(wrong) else 0.0


def compare(measured: pl.DataFrame) -> pl.DataFrame:
    """Mean over draws and sets of each way minus 'own', with 1.96 standard errors over sets."""
    own = measured.filter(way="own").drop("way").rename({"value": "own"})
    keys = ["file", "kind", "labels", "quantity", "way"]
    by_set = (
        measured.filter(pl.col("way") != "own")
        .join(own, on=["file", "kind", "set", "labels", "draw", "quantity"])
        .group_by(*keys, "set")
        .agg(pl.mean("own"), pl.mean("value"), difference=(pl.col("value") - pl.col("own")).mean())
    )
    return (
        by_set.group_by(keys)
        .agg(
            pl.mean("own"),
            pl.mean("value"),
            pl.mean("difference"),
            half_width=1.96 * pl.std("difference") / pl.len().sqrt(),
            worst=pl.max("difference"),
            sets=pl.len(),
        )
        .sort("quantity", "way", "file", "kind", "labels")
    )


def main(paths: list[str]) -> None:
    logging.getLogger("tracecal").setLevel(logging.ERROR)
    for row in compare(pl.concat(measure(Path(path)) for path in paths)).iter_rows(named=True):
        print(
            f"{row['quantity']:14} {row['way']:20} {row['file']:13} {row['kind']:15} "
            f"{row['labels']:4} labels  {row['own']:.4f} → {row['value']:.4f}  "
            f"{row['difference']:+.4f} ± {row['half_width']:.4f}, largest {row['worst']:+.4f}, "
            f"{row['sets']} sets"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
