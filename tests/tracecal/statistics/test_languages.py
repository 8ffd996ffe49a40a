"""Metrics by language: a division of the pooled evaluation part, nothing else."""

import numpy as np
import polars as pl
import pytest

from tracecal.statistics.metrics import METRICS, all_metrics, metrics_by_language

RNG = np.random.default_rng(0)
IDS = [f"e{index:02}" for index in range(40)]
PREDICTIONS = pl.concat(
    pl.DataFrame(
        {
            "estimator": "s",
            "split": split,
            "example_id": IDS[split::2],
            "probability": RNG.random(20),
        }
    )
    for split in (0, 1)
)
ANSWERS = pl.DataFrame(
    {
        "example_id": IDS,
        "correct": RNG.random(40) < 0.5,
        "language": ["de", "en", "en", "zh"] * 10,
    }
)
SCORES = pl.DataFrame({"example_id": IDS, "s": RNG.random(40)})
SETTINGS = {"model": "m", "task": "t", "estimators": ["s"], "splits": [0, 1], "ece_bins": 15}


def test_each_language_is_measured_on_its_own_answers():
    divided = metrics_by_language(PREDICTIONS, ANSWERS, SCORES, **SETTINGS)
    assert divided.schema == pl.Schema({"language": pl.String, **METRICS})
    for language in ("de", "en", "zh"):
        own = ANSWERS.filter(language=language).drop("language")
        expected = all_metrics(
            PREDICTIONS.filter(pl.col("example_id").is_in(own["example_id"].implode())),
            own,
            SCORES,
            **SETTINGS,
        )
        assert divided.filter(language=language).drop("language").equals(expected)


def test_languages_add_up_to_the_whole():
    pooled = all_metrics(PREDICTIONS, ANSWERS.drop("language"), SCORES, **SETTINGS)
    divided = metrics_by_language(PREDICTIONS, ANSWERS, SCORES, **SETTINGS)
    for split in (0, 1):
        whole = pooled.filter(split=split, metric="brier").row(0, named=True)
        parts = divided.filter(split=split, metric="brier").filter(pl.col("n") > 0)
        assert parts["n"].sum() == whole["n"]
        weighted = (parts["value"] * parts["n"]).sum() / whole["n"]
        assert weighted == pytest.approx(whole["value"])


def test_one_language_has_no_rows_of_its_own():
    english = ANSWERS.with_columns(language=pl.lit("en"))
    assert metrics_by_language(PREDICTIONS, english, SCORES, **SETTINGS).height == 0
