"""Thresholds of cascades in a run: of the first split's fit, tested on its other groups."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from trace_workflow.analyses.cascade_promises import CASCADE_PROMISES, analysis
from trace_workflow.analyses.study_files import StudyFiles
from trace_workflow.tables import cascade_promises as table
from trace_workflow.tables import columns
from trace_workflow.tables.study_results import StudyResults
from tracecal.calibration.cascade_guarantee import find_cascade_guarantee
from tracecal.calibration.fits import fit
from tracecal.calibration.rated_answers import PairedAnswers
from tracecal.calibration.splits import make_splits
from tracecal.io.input_files import read_yaml

N = 240
IDS = [f"e{place:03}" for place in range(N)]
GROUPS = pl.DataFrame({"example_id": IDS, "group_id": [f"g{place // 2}" for place in range(N)]})
RNG = np.random.default_rng(3)
SCORE = np.round(RNG.normal(size=N), 3)
SMALL = RNG.random(N) < 1 / (1 + np.exp(-2 * SCORE))
LARGE = RNG.random(N) < 0.95
SETTINGS = {
    "inputs": ["features.x"],
    "method": "platt",
    "guarantees": [("below", 0.1), ("at_least", 0.7)],
    "confidence": 0.9,
    "largest_group": None,
}


@pytest.fixture
def found(tmp_path):
    """The rows of models a (small) and b (large); a lacks the score of one answer."""
    splits = make_splits(GROUPS, "t", 1, 2, 0.35)
    paths = {kind: [] for kind in ("labels", "scores", "features", "splits", "questions")}
    for model, correct in (("a", SMALL), ("b", LARGE)):
        score = pl.Series("x", [None, *SCORE[1:]] if model == "a" else SCORE)
        frames = {
            "labels": GROUPS.with_columns(correct=correct),
            "scores": GROUPS.select("example_id"),
            "features": GROUPS.select("example_id", score),
            "splits": splits,
            "questions": GROUPS.with_columns(role=pl.lit("evaluation")),
        }
        for kind, frame in frames.items():
            paths[kind].append(str(tmp_path / f"{kind}-{model}.parquet"))
            frame.write_parquet(paths[kind][-1])
    pairs = [["a", "t"], ["b", "t"]]
    two = {"small": "a", "large": "b"}
    return splits, lambda **more: analysis(StudyFiles(paths, pairs), **SETTINGS | two | more)


def test_thresholds_are_of_the_first_splits_fit_and_tested_on_its_other_groups(found):
    splits, analysed = found
    made = analysed()
    assert made.schema == CASCADE_PROMISES
    assert made.select("small", "large").unique().rows() == [("a", "b")]
    first = splits.filter(split=0).sort("rank", "example_id")
    places = first["example_id"].str.slice(1).cast(pl.Int64).to_numpy()
    known = places != 0
    seen = (first["part"] == "calibration").to_numpy()
    x = SCORE[places][:, None]
    fitted = fit(x[seen & known], SMALL[places][seen & known], "platt")
    probability = np.where(known, fitted.predict(x), -np.inf)
    parts = [
        PairedAnswers(
            first["rank"].to_numpy()[rows],
            probability[rows],
            *(one[places][rows] for one in (SMALL, LARGE)),
        )
        for rows in (seen, ~seen)
    ]
    for row, (promise, value) in zip(made.to_dicts(), SETTINGS["guarantees"], strict=True):
        expected = find_cascade_guarantee(*parts, promise, value, 0.1)
        assert row["threshold"] == pytest.approx(expected.threshold)
        assert row["escalated"] == pytest.approx(expected.escalated)
        assert row["groups"] == expected.groups
        kept = probability >= row["threshold"]
        right = np.where(kept, SMALL[places], LARGE[places])[~seen]
        # Each group has two answers.
        assert row["accuracy"] == pytest.approx(right.mean())


def test_a_pair_stands_whichever_is_right_more_often(found):
    """Which pairs are tested must not depend on the answers that they are tested on."""
    _, analysed = found
    back = analysed(small="b", large="a")
    assert back.select("small", "large").unique().rows() == [("b", "a")]
    assert back["small_accuracy"][0] > back["large_accuracy"][0]


def test_the_table_has_a_row_for_each_promise(found):
    _, analysed = found
    settings = StudyResults(models={"a": "A", "b": "B"}, tasks={"t": "T"})
    made = table.table(
        replace(settings, frames={"cascade_promises": analysed(guarantees=[("below", 0.001)])})
    )
    assert made.frame["promise_label"].to_list() == ["at most 0.001 below"]
    assert made.frame["threshold"].to_list() == [None]
    assert made.frame["reason"][0].startswith("needs at least")
    assert made.titles == {"a b": "A to B"}
    told = read_yaml(columns.COLUMNS)
    assert all(columns.describe_column(column, {}, told) for column in made.frame.columns)
