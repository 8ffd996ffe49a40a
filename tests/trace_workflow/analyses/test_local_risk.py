"""Which answers are shown: by the rule, whatever the order of the rows."""

import numpy as np
import polars as pl
import pytest

from trace_workflow.analyses.local_risk import MIN_TOKENS, N_ANSWERS, local_risk
from tracecal.estimators.features import answer_features


def made(entropies, correct):
    ids = [f"e{i:03}" for i in range(len(entropies))]
    trace = pl.DataFrame(
        {"example_id": ids, "entropy": entropies, "surprisal": entropies},
        schema_overrides={"entropy": pl.List(pl.Float32), "surprisal": pl.List(pl.Float32)},
    )
    keys = {"model": pl.lit("m"), "task": pl.lit("t")}
    labels = pl.DataFrame({"example_id": ids, "correct": correct}).with_columns(**keys)
    features = answer_features(trace).with_columns(**keys)
    return features, labels, trace.select("example_id", "entropy").with_columns(**keys)


def test_the_rule_by_hand():
    flat, peak = [1.0] * 12, [0.1] * 8 + [3.0] * 4
    faint, short = [0.0] * 8 + [0.01] * 4, [0.0] * 3 + [3.0] * 4
    mild = [0.5] * 8 + [3.0] * 4
    answers = [flat, peak, faint, short, mild, peak, flat, flat]
    every = local_risk(*made(answers, [False] * 5 + [True] * 3))
    assert every["example_id"].to_list() == ["e001", "e004", "e005"]
    assert every.filter("correct").select("answers", "eligible").row(0) == (3, 1)
    found = every.filter(~pl.col("correct"))
    # The median peak is 2: flat and faint lie below it. Short is too short, the last are correct.
    assert found["example_id"].to_list() == ["e001", "e004"]
    assert found["local_peak"].to_list() == pytest.approx([3.0, 3.0])
    assert found["mean_risk"].to_list() == pytest.approx([12.8 / 12, 16 / 12])
    assert found["peak_start"].to_list() == [8, 8]
    assert (found["answers"][0], found["eligible"][0]) == (5, 2)


def test_row_order_changes_nothing_and_no_more_than_fit_are_taken():
    rng = np.random.default_rng(0)
    entropies = [rng.gamma(0.3, size=rng.integers(4, 30)).tolist() for _ in range(150)]
    frames = made(entropies, rng.random(150) < 0.5)
    found = local_risk(*frames)
    assert found["correct"].to_list() == [False] * N_ANSWERS + [True] * N_ANSWERS
    assert (found["entropy"].list.len() >= MIN_TOKENS).all()
    for part in found.partition_by("correct"):
        assert (part["local_peak"] / part["mean_risk"]).is_sorted(descending=True)
    shuffled = [frame.sample(fraction=1, shuffle=True, seed=3) for frame in frames]
    assert local_risk(*shuffled).equals(found)


def test_a_run_without_such_an_answer_has_no_row():
    found = local_risk(*made([[1.0] * 9] * 4, [True, True, False, False]))
    assert found.is_empty()
    assert found.schema["peak_start"] == pl.Int64
