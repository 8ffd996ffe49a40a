"""The default fit against simpler ones, on labelled answers: the table of docs/background/real_answers.md.

    PYTHONPATH=workflow_scripts python -m benchmarks.default_fit [FILE...]

Reads files of labelled answers, by default examples/labelled.jsonl, each as it is and without its
alternatives. DRAWS times 50, 100 and 300 answers are drawn as labels, whole groups at a time, and up
to 1,500 others are predicted. Prints the mean Brier score of each fit, and the default's minus it with a
95 % interval over sets and draws. Seconds a set.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from tracecal.answers.reading import Reading
from tracecal.answers.sources import answers_in
from tracecal.calibration.groups import group_answers
from tracecal.calibration.predictions import calibrate_all
from tracecal.estimators.registry import ESTIMATORS
from tracecal.estimators.trace_inputs import compute_inputs
from tracecal.io.randomness import seeded

SIZES, DRAWS, MOST_EVALUATED, RESAMPLES, SEED = (50, 100, 300), 20, 1500, 2000, 2026
VOCABULARY = 200_000  # of entropies from listed log-probabilities
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "labelled.jsonl"
MEAN_SURPRISAL = "features.mean_surprisal_log_conf"
FITS = {e.id: e for e in ESTIMATORS if e.id in ("mean_of_three", "surprisal_ridge", "log_ridge")}
INPUTS = sorted({name for e in FITS.values() for name in e.inputs})
SCHEMA = {
    "set": pl.String,
    "labels": pl.Int64,
    "draw": pl.Int64,
    "fit": pl.String,
    "brier": pl.Float64,
}


def read_sets(paths: Iterable[str]) -> dict[str, pl.DataFrame]:
    """The labelled answers of each file with their inputs, as they are and without alternatives."""
    sets = {}
    for path in paths:
        answers = answers_in(path, Reading(vocabulary=VOCABULARY)).frame.drop_nulls("correct")
        groups = group_answers(answers)
        without = answers.with_columns(entropy=pl.lit(None, answers.schema["entropy"]))
        for name, rows in ((path, answers), (f"{path}, no alternatives", without)):
            if name != path and answers["entropy"].null_count() == answers.height:
                continue
            inputs = compute_inputs(rows, INPUTS)
            frame = rows.select("example_id", "correct").join(inputs, on="example_id")
            sets[name] = frame.join(groups, on="example_id")
    return sets


def measure(sets: Mapping[str, pl.DataFrame], draws: int = DRAWS) -> pl.DataFrame:
    """Brier scores, a row for each set, number of labels, draw and fit (SCHEMA)."""
    rows = []
    for name, frame in sets.items():
        for size in SIZES:
            if frame.height >= size + 50:
                rows += [(name, size, *row) for row in _brier_scores(frame, size, draws)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _brier_scores(frame: pl.DataFrame, size: int, draws: int) -> list[tuple[int, str, float]]:
    """Draw, fit and Brier score; 'default' is that of `size` labels and of the log's kind."""
    splits = pl.concat(_draw(frame, size, draw) for draw in range(draws))
    answers = frame.join(splits.select("example_id").unique(), on="example_id", how="semi")
    fits = {name: e for name, e in FITS.items() if answers.select(e.inputs).drop_nulls().height}
    estimators = {name: e.inputs for name, e in fits.items()} | {"line": [MEAN_SURPRISAL]}
    own_fits = {name: e.fit for name, e in fits.items()}
    predictions, _ = calibrate_all(answers, splits, estimators, "platt", own_fits)
    isotonic, _ = calibrate_all(answers, splits, {"isotonic": [MEAN_SURPRISAL]}, "isotonic")
    labels = frame.select("example_id", "correct")
    evaluated = splits.filter(part="evaluation").join(labels, on="example_id")
    calibration = splits.filter(part="calibration").join(labels, on="example_id")
    rates = calibration.group_by("split").agg(probability=pl.mean("correct"))
    base = evaluated.join(rates, on="split").with_columns(estimator=pl.lit("base rate"))
    predicted = pl.concat([predictions, isotonic]).join(labels, on="example_id")
    squared = (pl.col("probability") - pl.col("correct")) ** 2
    scores = pl.concat([predicted, base.select(predicted.columns)]).group_by("split", "estimator")
    rows = scores.agg(brier=squared.mean()).sort("split", "estimator").rows()
    default = "mean_of_three" if "mean_of_three" in fits else "surprisal_ridge"
    return [(split, "default" if name == default else name, brier) for split, name, brier in rows]


def _draw(frame: pl.DataFrame, size: int, draw: int) -> pl.DataFrame:
    """A split whose calibration part is the first groups with at least `size` answers."""
    groups = frame["group_id"].unique().sort()
    order = seeded("default_fit", SEED, size, draw).permutation(len(groups))
    ranks = pl.DataFrame({"group_id": groups, "rank": order})
    rows = (
        frame.select("example_id", "group_id").join(ranks, on="group_id").sort("rank", "example_id")
    )
    last = rows["rank"][size - 1]
    rows = rows.filter((pl.col("rank") <= last) | (pl.int_range(pl.len()) < size + MOST_EVALUATED))
    part = (
        pl.when(pl.col("rank") <= last).then(pl.lit("calibration")).otherwise(pl.lit("evaluation"))
    )
    return rows.select("example_id", "rank", split=pl.lit(draw, pl.Int64), part=part)


def compare(measured: pl.DataFrame) -> pl.DataFrame:
    """For each number of labels and fit: `brier`, and the default's minus it with its interval."""
    default = measured.filter(fit="default").drop("fit").rename({"brier": "default"})
    paired = measured.join(default, on=["set", "labels", "draw"])
    rows = []
    for (size, fit), scores in paired.group_by("labels", "fit", maintain_order=True):
        by_set = [
            rows["difference"].to_numpy()
            for rows in scores.with_columns(
                difference=pl.col("default") - pl.col("brier")
            ).partition_by("set")
        ]
        low, high = np.quantile(_resample(by_set), [0.025, 0.975])
        mean = np.mean([values.mean() for values in by_set])
        worst = max(values.mean() for values in by_set)
        brier = scores.group_by("set").agg(pl.mean("brier"))["brier"].mean()
        rows.append((size, fit, len(by_set), brier, mean, low, high, worst))
    columns = ["labels", "fit", "sets", "brier", "difference", "low", "high", "worst"]
    return pl.DataFrame(rows, schema=columns, orient="row").sort("labels", "brier")


def _resample(by_set: list[np.ndarray]) -> np.ndarray:
    """Means over sets of means over draws, with sets and draws resampled."""
    rng = seeded("default_fit", SEED, "resample")
    means = np.empty(RESAMPLES)
    for number in range(RESAMPLES):
        chosen = rng.integers(len(by_set), size=len(by_set))
        means[number] = np.mean([rng.choice(by_set[k], len(by_set[k])).mean() for k in chosen])
    return means


def main(paths: list[str]) -> int:
    sets = read_sets(paths or [str(EXAMPLE)])
    for kind in (True, False):
        of_kind = {
            name: frame
            for name, frame in sets.items()
            if bool(frame.select(FITS["mean_of_three"].inputs).drop_nulls().height) == kind
        }
        if not of_kind:
            continue
        print("with alternatives" if kind else "without alternatives")
        for row in compare(measure(of_kind)).iter_rows(named=True):
            print(
                f"{row['labels']:5} {row['fit']:16} {row['brier']:.4f}  default minus it "
                f"{row['difference']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}], "
                f"worst of {row['sets']} sets {row['worst']:+.4f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
