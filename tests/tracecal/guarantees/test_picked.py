"""The baseline that the calibration labels pick: by hand, and through what follows from it."""

import numpy as np
import polars as pl
import pytest

from tracecal.estimators.estimator import PICKED
from tracecal.fits.predictions import calibrate_all, pick_baselines, with_picked
from tracecal.statistics.splits import make_splits

INPUTS = {name: [f"scores.{name}"] for name in ("noise", "good", "copy", "holed")}


def drawn(seed=1, n=200):
    draw = np.random.default_rng(seed)
    strength = draw.normal(size=n)
    good = strength + 0.3 * draw.normal(size=n)
    columns = {"noise": draw.normal(size=n), "good": good, "copy": good, "holed": 5 * strength}
    return pl.DataFrame(
        {
            "example_id": [f"{place:03}" for place in range(n)],
            "correct": draw.uniform(size=n) < 1 / (1 + np.exp(-3 * strength)),
            **{f"scores.{name}": values for name, values in columns.items()},
        }
    ).with_columns(
        pl.when(pl.int_range(pl.len()) % 9 > 0).then("scores.holed").alias("scores.holed")
    )


def fitted(answers, baselines):
    groups = answers.select("example_id", group_id="example_id")
    splits = make_splits(groups, "t", 0, 5, 0.35)
    predictions, calibrators = calibrate_all(answers, splits, INPUTS, "platt")
    return predictions, pick_baselines(answers, splits, INPUTS, calibrators, baselines), splits


def test_the_smallest_log_loss_on_the_calibration_part_is_picked_the_first_of_equal_ones():
    answers = drawn()
    _, picked, splits = fitted(answers, ["noise", "good", "copy"])
    assert picked["baseline"].to_list() == ["good"] * 5
    _, copied, _ = fitted(answers, ["noise", "copy", "good"])
    assert copied["baseline"].to_list() == ["copy"] * 5
    # The loss is that of the calibration labels, so those of the other part change nothing.
    calibrating = splits.filter(split=0, part="calibration")["example_id"]
    seen = pl.col("example_id").is_in(calibrating.implode())
    other = answers.with_columns(
        correct=pl.when(seen).then("correct").otherwise(~pl.col("correct"))
    )
    _, again, _ = fitted(other, ["noise", "good", "copy"])
    assert again["log_loss"][0] == picked["log_loss"][0]


def test_a_baseline_that_lacks_scores_is_no_candidate():
    _, picked, _ = fitted(drawn(), ["noise", "good", "holed"])
    assert set(picked["baseline"]) == {"good"}
    _, alone, _ = fitted(drawn(), ["holed"])
    assert set(alone["baseline"]) == {"holed"}
    assert fitted(drawn(), [])[1].is_empty()


def test_its_predictions_are_those_of_what_is_picked_split_by_split():
    predictions, picked, _ = fitted(drawn(), ["noise", "good"])
    mixed = picked.with_columns(
        baseline=pl.when(pl.col("split") == 3).then(pl.lit("noise")).otherwise("baseline")
    )
    both = with_picked(predictions, mixed)
    own = both.filter(estimator=PICKED)
    assert both.head(predictions.height).equals(predictions)
    for split in range(5):
        wanted = predictions.filter(estimator="noise" if split == 3 else "good", split=split)
        assert own.filter(split=split)["probability"].to_list() == pytest.approx(
            wanted["probability"].to_list()
        )
