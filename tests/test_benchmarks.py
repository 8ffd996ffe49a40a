"""Benchmarks run to their end, here on next to nothing; `make bench` measures.

That of the workflow is left out: dry runs have tests of their own.
"""

from collections import Counter
from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp

from benchmarks import (
    alarms,
    calibration,
    changed_words,
    commands,
    decoding,
    default_fit,
    growth,
    mapie,
    operators,
    parts,
    polygraph,
    saturated,
    serve,
)
from tracecal.estimators.registry import ON_LOGARITHMS

POLYGRAPH = pytest.mark.skipif(
    not find_spec("lm_polygraph"), reason="lm-polygraph is in .venv-polygraph, for make bench"
)
MAPIE = pytest.mark.skipif(
    not find_spec("mapie"), reason="MAPIE is in .venv-mapie, for make bench AREAS=mapie"
)
FEW = dict(list(calibration.ESTIMATORS.items())[:2])


@pytest.mark.parametrize(
    ("area", "small"),
    [
        (calibration, {"SIZES": (60,), "ESTIMATORS": FEW}),
        (commands, {"SIZES": (60,), "SCORED": 60, "SHOWN": 60}),
        (decoding, {"SIZES": ((300, 32, 1, 2),), "ANSWERS": 4, "LONGEST": 3, "NEW": 3}),
        (operators, {"SIZES": (50,)}),
        (parts, {"SIZES": (50,)}),
        (serve, {"REQUESTS": 4, "AT_ONCE": 2, "REPEATS": 1, "MANY": 40}),
        pytest.param(polygraph, {"SIZES": ((300, 32, 1, 2, 2, 3),)}, marks=POLYGRAPH),
        pytest.param(
            mapie,
            {
                "LABELS": (100, 1000),
                "DRAWS": 2,
                "STREAMS": 4,
                "JUDGED_STREAMS": 4,
                "SLOW_STREAMS": 1,
            },
            marks=MAPIE,
        ),
    ],
    ids=lambda value: getattr(value, "__name__", "").split(".")[-1],
)
def test_an_area_runs_to_its_end(area, small, monkeypatch):
    for name, value in small.items():
        monkeypatch.setattr(area, name, value)
    measured = list(area.rows())
    assert measured
    assert all(row.ours > 0 for row in measured)


def test_growth_is_measured_at_enough_sizes_to_see_its_shape():
    assert all(len(sizes) >= 5 and [*sizes] == sorted(sizes) for sizes in growth.SIZES.values())


def test_growth_is_drawn(monkeypatch, tmp_path):
    monkeypatch.setattr(growth, "_dry_run", lambda models, folder: lambda: 1.0)
    small = {"answers": (20, 40), "tokens an answer": (2, 4), "models": (1,), "estimators": (2, 3)}
    monkeypatch.setattr(growth, "SIZES", small)
    monkeypatch.setattr(growth, "ANSWERS", 60)
    monkeypatch.setattr(growth, "PICTURE", tmp_path / "growth.svg")
    assert len(list(growth.rows())) == 7
    assert (tmp_path / "growth.svg").read_text().count("<svg") == 1


def test_labels_are_drawn_in_whole_groups_until_there_are_as_many():
    rng = np.random.default_rng(3)
    population = mapie.GROUPED["unequal groups"]["of 1 and 9, the large ones worse"]
    drawn = population.draw(rng, population.groups)
    task = mapie.Task(drawn.score, drawn.wrong, drawn.group)
    places = task.labelled(200, rng)
    assert 200 <= len(places) == len(set(places)) < 209
    sizes = np.bincount(drawn.group)
    groups, counts = np.unique(drawn.group[places], return_counts=True)
    assert (counts == sizes[groups]).all()


def test_ours_is_broken_no_more_often_than_stated_where_groups_just_miss_the_target(monkeypatch):
    monkeypatch.setattr(mapie, "LABELS", (400,))
    monkeypatch.setattr(mapie, "ways", lambda task: {"ours": mapie.ours})
    for kind, name, draw in mapie.tasks():
        if kind == "unequal groups":
            found = mapie.kept(draw, 30)[400, "ours"]
            assert found[:, 1].mean() <= 0.1, name


def test_the_windows_statistic_is_scipys():
    rng = np.random.default_rng(2)
    reference, values = rng.random(150).round(2), rng.random(260).round(2)
    told = alarms.distance(reference, values)
    window, step = alarms.WINDOW, alarms.STEP
    for end in (window, window + step, 260):
        expected = ks_2samp(reference, values[end - window : end]).statistic
        assert told[end - 1] == pytest.approx(expected)
    assert told[: window - 1].max() == told[window] == 0


def test_a_change_of_traffic_is_noticed_soon_and_no_change_hardly_ever():
    turned, unchanged = (
        alarms.monitors([alarms.drawn(shift, seed) for seed in range(20)]) for shift in (1.0, 0.0)
    )
    assert np.isfinite(unchanged).mean() <= 0.15
    delays = turned[turned > alarms.BEFORE] - alarms.BEFORE
    assert len(delays) >= 18 and 5 <= np.median(delays) <= 60


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("one token, saturated", 0.005),
        ("up to 8 tokens, saturated", 0.002),
        ("one token, by its probability alone", -0.005),
    ],
)
def test_on_logarithms_saturated_traces_still_tell_answers_apart(kind, least, monkeypatch):
    """At 100 labels; the fits lose little where only the probability itself says something."""
    monkeypatch.setattr(saturated, "SPLITS", 6)
    monkeypatch.setattr(saturated.few_labels, "SIZES", (100,))
    found = saturated.measured(kind, sets=1, resamples=0)
    means = found.filter(pl.col("task").is_null(), labels=100, metric="brier")
    brier = dict(means.select("estimator", "value").iter_rows())
    for fit in ON_LOGARITHMS:
        assert brier["trace_plus"] - brier[fit] > least, fit


def test_the_picture_of_saturated_answers_says_who_is_better():
    """Where TRACE+ is better by .02 the fits lose; a bar reaches from one end to the other."""
    found = {}
    for kind, difference in zip(saturated.PANELS, (-0.03, 0.02, 0.0), strict=True):
        values = {"difference": difference, "low": difference - 0.01, "high": difference + 0.02}
        rows = [
            {"labels": 200, "task": None, "estimator": one, "metric": "brier"} | values
            for one in saturated.DRAWN
        ]
        found[kind] = pl.DataFrame(rows, schema_overrides={"task": pl.String})
    gained = saturated.gained(found["one token, saturated"])
    assert gained.row(0)[2:] == pytest.approx((0.03, 0.01, 0.04))
    figure = saturated.picture(found, dict.fromkeys(saturated.DRAWN, "Fit"))
    assert " ".join(figure.get_suptitle().split()) == (
        "On saturated answers fit beats TRACE+ by 0.030 with 200 labels; "
        "where small doubts say nothing it loses to it by 0.020"
    )


def test_a_word_has_its_most_surprising_token_and_ties_are_drawn_at_random():
    tokens = [("a@@", -1.0), ("b", -2.0), ("c", -2.0), ("d", -0.5), ("</s>", -9.0)]
    tokens = [{"token": token, "logprob": value} for token, value in tokens]
    words, surprisals, word_of = changed_words.word_surprisals(tokens)
    assert (words, surprisals, word_of.tolist()) == (
        ["ab", "c", "d"],
        [2.0, 2.0, 0.5],
        [0, 0, 1, 2],
    )
    row = {"tokens": tokens, "words": words, "changed": [True, False, False]}
    rates = {"d": 0.9}
    (chosen,) = changed_words.hits(
        pl.DataFrame([row]), rates, Counter(["ab", "c", "c", "d"])
    ).to_dicts()
    assert chosen == pytest.approx(
        {"highest": 0.5, "usual": 0, "rarest": 0.5, "longest": 1, "random": 1 / 3, "lowest": 0}
        | {"window": 1, "random_window": 1}
    )


def test_the_default_fit_is_compared_with_the_base_rate_by_hand(monkeypatch):
    """On the example of the repository, with and without its alternatives."""
    monkeypatch.setattr(default_fit, "SIZES", (50,))
    sets = default_fit.read_sets([str(default_fit.EXAMPLE)])
    measured = default_fit.measure(sets, draws=3)
    assert measured["fit"].n_unique() == 6 and measured["set"].n_unique() == 2
    (name, frame), *_ = sets.items()
    split = default_fit._draw(frame, 50, 2).join(frame, on="example_id")
    rate = split.filter(part="calibration")["correct"].mean()
    others = split.filter(part="evaluation")["correct"]
    assert len(others) == 350
    brier = measured.filter(set=name, draw=2, fit="base rate")["brier"].item()
    assert brier == pytest.approx(((others.cast(float) - rate) ** 2).mean())
    compared = default_fit.compare(measured.filter(set=name)).rows_by_key("fit", named=True)
    assert compared["default"][0]["difference"] == 0
    assert compared["line"][0]["high"] < -0.03
