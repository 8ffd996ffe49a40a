"""Improvements and their intervals: what is compared, averages, and coverage by simulation."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from trace_workflow.analyses.averages import averages
from trace_workflow.analyses.comparisons import comparisons
from trace_workflow.analyses.gains import gains, name_most_picked
from trace_workflow.analyses.improvements import improvements
from tracecal.statistics.metrics import METRICS
from tracecal.statistics.resampling import RESAMPLES, resample_metrics

MAIN = {"main": {"model": "m", "tasks": ["t", "u"]}}


def frame(values):
    """Observed and resampled values by (model, task, estimator, metric)."""
    rows = [(*key, observed, list(drawn)) for key, (observed, *drawn) in values.items()]
    return pl.DataFrame(rows, schema=RESAMPLES, orient="row")


def on_task(task="t", metric="brier", model="m", **estimators):
    return {(model, task, name, metric): values for name, values in estimators.items()}


def improved(resampled, baselines, studies, level, own=()):
    """The improvements where one split has the values of the whole sample."""
    columns = ("model", "task", "estimator", "metric", pl.col("observed").alias("value"))
    measured = resampled.select(*columns, split=pl.lit(0), n=pl.lit(9)).select(*METRICS)
    gained = gains(averages(measured, studies), baselines, baselines[0], own)
    return improvements(gained, resampled, baselines[0], studies, level, own)


def bounds(values, studies=MAIN, baselines=("a", "b"), level=0.5, own=()):
    """The first baseline is the named one."""
    return improved(frame(values), baselines, studies, level, own)


def row(found, study=None, model="m", task=None, metric="brier", against="named"):
    keys = {"study": study, "model": model, "task": task, "metric": metric, "against": against}
    matching = found.filter(pl.col(key).eq_missing(pl.lit(value)) for key, value in keys.items())
    return matching.row(0, named=True)


def test_the_oracle_is_a_point_and_the_others_have_intervals_of_their_own():
    values = on_task(
        a=(0.11, 0.10, 0.30),
        b=(0.10, 0.30, 0.10),
        picked_baseline=(0.12, 0.2, 0.2),
        trace_plus=(0.2, 0.2, 0.2),
    )
    found = bounds(values, level=0.999999)
    named, picked, oracle = (
        row(found, task="t", against=against) for against in ("named", "picked", "oracle")
    )
    assert (named["low"], named["high"]) == pytest.approx((-0.1, 0.1), abs=1e-6)
    assert (named["difference"], named["baseline"]) == (pytest.approx(-0.09), "a")
    assert (picked["low"], picked["high"]) == pytest.approx((0, 0), abs=1e-6)
    assert (picked["reference"], picked["baseline"]) == (0.12, None)
    assert (oracle["difference"], oracle["baseline"]) == (pytest.approx(-0.1), "b")
    assert (oracle["low"], oracle["high"], oracle["resamples"]) == (None, None, 0)


def test_an_own_score_has_every_comparison_of_trace_plus_and_one_with_it():
    values = on_task(
        a=(0.3, 0.2, 0.4),
        picked_baseline=(0.25, 0.2, 0.2),
        trace_plus=(0.1, 0.1, 0.1),
        gap=(0.2, 0.1, 0.3),
    )
    values |= {("n", *key[1:]): value for key, value in values.items() if key[2] != "gap"}
    studies = {"cross": {"models": ["m", "n"], "tasks": ["t"]}}
    rows = bounds(values, studies, ["a"], level=0.999999, own=["gap"])
    own = rows.filter(estimator="gap", task="t").sort("against")
    assert own["against"].to_list() == ["named", "oracle", "picked", "trace_plus"]
    assert own["baseline"].to_list() == ["a", "a", None, "trace_plus"]
    assert own["difference"].to_list() == pytest.approx([0.1, 0.1, 0.05, -0.1])
    plus = own.row(3, named=True)
    assert (plus["value"], plus["reference"]) == (0.2, 0.1)
    assert (plus["low"], plus["high"]) == pytest.approx((-0.2, 0.0), abs=1e-6)
    overall = rows.filter(pl.col("model").is_null(), estimator="gap", against="trace_plus")
    assert overall["difference"].to_list() == pytest.approx([-0.1]), "of the models that have it"
    # It is no baseline: TRACE+ is compared with what it was compared with before.
    alone = bounds({key: value for key, value in values.items() if key[2] != "gap"}, studies, ["a"])
    rest = rows.filter(estimator="trace_plus").drop("low", "high", "level")
    assert rest.equals(alone.drop("low", "high", "level"))


def test_each_metric_has_its_own_best_baseline_and_direction():
    values = on_task(a=(0.1, 0.1), b=(0.2, 0.2), trace_plus=(0.05, 0.05))
    values |= on_task(metric="auroc", a=(0.6, 0.6), b=(0.7, 0.7), trace_plus=(0.9, 0.8))
    found = bounds(values)
    assert row(found, task="t")["low"] == pytest.approx(0.05)
    assert row(found, task="t", against="oracle")["baseline"] == "a"
    by_auroc = row(found, task="t", metric="auroc", against="oracle")
    assert (by_auroc["baseline"], by_auroc["difference"]) == ("b", pytest.approx(0.2))
    named = row(found, task="t", metric="auroc")
    assert named["low"] == named["high"] == pytest.approx(0.2)


def test_the_baseline_picked_most_often_is_named():
    values = on_task(a=(0.2, 0.2), picked_baseline=(0.2, 0.2), trace_plus=(0.1, 0.1))
    values |= on_task("u", a=(0.2, 0.2), picked_baseline=(0.2, 0.2), trace_plus=(0.1, 0.1))
    picks = {("m", "t"): ["b", "a", "b"], ("m", "u"): ["a", "a", "b"]}
    found = name_most_picked(bounds(values), picks, MAIN)
    names = [row(found, task=task, against="picked")["baseline"] for task in ("t", "u")]
    assert names == ["b", "a"]
    assert row(found, study="main", against="picked")["baseline"] == "a", "three each: by name"
    assert row(found, task="t")["baseline"] == "a", "the named one stays"


def test_intervals_against_all_baselines_at_once_are_wider_and_by_hand():
    draw = np.random.default_rng(4)
    drawn = {name: 0.3 + 0.01 * sd * draw.normal(size=400) for name, sd in {"a": 1, "b": 3}.items()}
    values = on_task(**{name: (0.3, *d) for name, d in drawn.items()}, trace_plus=[0.2] * 401)
    found = comparisons(frame(values), ["a", "b", "absent"], MAIN, 0.9)
    own = found.filter(task="t").sort("baseline")
    assert own["baseline"].to_list() == ["a", "b"]
    deviations = np.array([drawn["a"] - 0.3, drawn["b"] - 0.3])
    errors = deviations.std(axis=1)
    quantile = np.quantile((np.abs(deviations) / errors[:, None]).max(axis=0), 0.9)
    assert own["low"].to_list() == pytest.approx(list(0.1 - quantile * errors))
    assert own["high"].to_list() == pytest.approx(list(0.1 + quantile * errors))
    assert own["resamples"].to_list() == [400, 400]
    # The pointwise quantile would be 1.64.
    assert quantile > 1.8


def test_an_estimator_that_equals_the_named_one_has_no_interval_but_zero():
    drawn = np.random.default_rng(1).uniform(0.1, 0.3, 200)
    values = on_task(a=(0.2, *drawn), b=(0.4, *(drawn + 0.01)), trace_plus=(0.2, *drawn))
    found = row(bounds(values, level=0.95), task="t")
    assert (found["difference"], found["low"], found["high"]) == (0, 0, 0)
    at_once = comparisons(frame(values), ["a"], MAIN, 0.95).filter(task="t")
    assert at_once.select("low", "high").row(0) == (0, 0)


def test_bounds_are_percentiles():
    drawn = np.random.default_rng(2).permutation(101) / 1000
    values = on_task(a=(0.2, *[0.2] * 101), trace_plus=(0.15, *(0.2 - drawn)))
    found = row(bounds(values, level=0.9), task="t")
    assert (found["low"], found["high"]) == pytest.approx((0.005, 0.095))
    assert (found["level"], found["resamples"]) == (0.9, 101)


def test_averages_take_resamples_by_their_number():
    values = on_task("t", a=(0.1, 0.1, 0.2), b=(0.3, 0.3, 0.3), trace_plus=(0.1, 0.1, 0.1))
    values |= on_task("u", a=(0.3, 0.3, 0.2), b=(0.2, 0.2, 0.2), trace_plus=(0.1, 0.1, 0.2))
    found = row(bounds(values, level=0.999999), study="main")
    # Averages: a 0.2, 0.2, 0.2; b 0.25 each; TRACE+ 0.1, 0.1, 0.15.
    assert (found["baseline"], found["difference"]) == ("a", pytest.approx(0.1))
    assert (found["low"], found["high"]) == pytest.approx((0.05, 0.1), abs=1e-6)


def test_undefined_resamples_are_left_out_and_counted():
    values = on_task("t", a=(0.3, None, 0.3, 0.3), trace_plus=(0.1, None, 0.2, 0.1))
    values |= on_task("u", a=(0.3, 0.3, 0.3, None), trace_plus=(0.1, 0.1, 0.2, None))
    found = bounds(values)
    assert row(found, task="t")["resamples"] == 2
    average = row(found, study="main")
    assert (average["low"], average["resamples"]) == (pytest.approx(0.1), 1)


def test_a_task_undefined_for_all_counts_in_no_average_and_a_gap_leaves_an_estimator_out():
    values = on_task("t", a=(None, None), b=(None, None), trace_plus=(None, None))
    values |= on_task("u", a=(0.1, 0.1), b=(0.3, 0.3), trace_plus=(0.2, 0.2))
    found = bounds(values)
    assert row(found, study="main")["difference"] == pytest.approx(-0.1)
    alone = row(found, task="t", against="oracle")
    assert [alone[key] for key in ("baseline", "difference", "low", "high")] == [None] * 4
    gap = values | on_task("t", a=(None, None), b=(0.3, 0.3), trace_plus=(0.2, 0.2))
    assert row(bounds(gap), study="main", against="oracle")["baseline"] == "b"
    assert row(bounds(gap), study="main")["difference"] is None, "the named one lacks a task"


@pytest.mark.parametrize("estimators", [{"a": (0.1, 0.1)}, {"trace_plus": (0.1, 0.1)}])
def test_without_one_side_everything_is_null(estimators):
    found = bounds(on_task(**estimators), {"main": MAIN["main"], "cross": CROSS})
    assert found.height == 4 * 3, "the pair; the averages of the main study's and the cross study's"
    assert found["difference"].null_count() == found["low"].null_count() == found.height


CROSS = {"models": ["m", "n"], "tasks": ["t"]}


def test_the_cross_study_is_averaged_over_its_models():
    values = on_task(a=(0.3, 0.3, 0.2), b=(0.4, 0.4, 0.4), trace_plus=(0.1, 0.1, 0.1))
    values |= on_task(model="n", a=(0.5, 0.5, 0.5), b=(0.3, 0.3, 0.3), trace_plus=(0.3, 0.3, 0.2))
    studies = MAIN | {"cross": CROSS}
    found = bounds(values, studies, level=0.999999)
    assert row(found, "cross", "m", against="oracle")["baseline"] == "a"
    assert row(found, "cross", "n", against="oracle")["baseline"] == "b"
    # Against `a`: 0.2 and 0.2, then 0.2 and 0.2, then 0.1 and 0.3.
    both = row(found, "cross", None)
    assert (both["difference"], both["baseline"]) == (pytest.approx(0.2), "a")
    assert (both["low"], both["high"]) == pytest.approx((0.2, 0.2))
    # Against the best of each: 0.2 and 0.
    best = row(found, "cross", None, against="oracle")
    assert (best["difference"], best["baseline"]) == (pytest.approx(0.1), None)
    missing = on_task(model="n", a=(0.5, 0.5, 0.5))
    left = bounds({key: v for key, v in values.items() if key[0] == "m"} | missing, studies)
    assert row(left, "cross", None)["difference"] == pytest.approx(0.2)


def test_the_order_of_rows_and_names_changes_nothing():
    draw = np.random.default_rng(5)
    values = {}
    for model in "mn":
        for task in "tu":
            drawn = {name: tuple(draw.uniform(0, 1, 9)) for name in ("a", "b", "trace_plus")}
            values |= on_task(task, "brier", model, **drawn) | on_task(
                task, "auroc", model, **drawn
            )
    studies = {"main": MAIN["main"], "cross": {"models": ["m", "n"], "tasks": ["t", "u"]}}
    ordered = bounds(values, studies)
    shuffled = frame(values).sample(fraction=1, shuffle=True, seed=6)
    assert improved(shuffled, ["a", "b"], studies, 0.5).equals(ordered)
    again = comparisons(shuffled, ["b", "a"], studies, 0.5)
    assert again.equals(comparisons(frame(values), ["a", "b"], studies, 0.5))


def simulated(draw, correct, groups, probabilities, scores):
    """The interval of one simulated task, 95 %."""
    ids = [f"{number:04d}" for number in range(len(correct))]
    answers = pl.DataFrame({"example_id": ids, "group_id": groups, "correct": correct})
    predictions = pl.concat(
        pl.DataFrame({"estimator": name, "split": 0, "example_id": ids, "probability": values})
        for name, values in probabilities.items()
    )
    drawn = resample_metrics(
        predictions,
        answers,
        pl.DataFrame({"example_id": ids, **scores}),
        model="m",
        task="t",
        estimators=list(probabilities),
        seed=int(draw.integers(2**31)),
        resamples=200,
    )
    baselines = [name for name in probabilities if name != "trace_plus"]
    return improved(drawn, baselines, MAIN, 0.95)


def covered(found, metric, truth):
    interval = row(found, task="t", metric=metric)
    return interval["low"] <= truth <= interval["high"]


@pytest.mark.slow
def test_intervals_of_a_fixed_difference_cover_it_as_often_as_they_say():
    # Scores are normal with means 0 and d: AUROC = Phi(d / sqrt 2). Three copies of each answer
    # make a group; were they drawn one by one, intervals would be too short by sqrt 3.
    draw, rounds, hits = np.random.default_rng(11), 300, {"brier": 0, "auroc": 0}
    truth = {"auroc": norm.cdf(1.5 / np.sqrt(2)) - norm.cdf(0.8 / np.sqrt(2))}
    # Answers are right with probability r; TRACE+ says r, the baseline 0.5: Brier 1/4 - E r(1-r).
    truth["brier"] = 0.25 - 1 / 6
    for _ in range(rounds):
        chance = draw.uniform(size=120)
        correct = draw.uniform(size=120) < chance
        shared = draw.normal(size=120)
        own = draw.normal(size=(2, 120))
        score = {
            name: correct * d + np.sqrt(0.5) * (shared + noise)
            for (name, d), noise in zip({"trace_plus": 1.5, "a": 0.8}.items(), own, strict=True)
        }
        found = simulated(
            draw,
            np.repeat(correct, 3),
            np.repeat(np.arange(120), 3).astype(str),
            {"trace_plus": np.repeat(chance, 3), "a": np.full(360, 0.5)},
            {name: np.repeat(values, 3) for name, values in score.items()},
        )
        for metric in hits:
            hits[metric] += covered(found, metric, truth[metric])
    for metric, count in hits.items():
        assert 0.91 <= count / rounds <= 0.98, (metric, count)
