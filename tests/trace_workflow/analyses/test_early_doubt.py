"""How early one can tell, on made-up traces whose first tokens say most."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from support.arrow_files import write_arrow
from support.synthetic import ENTRIES
from support.traced_answers import MODEL, traces
from trace_workflow.analyses import early_doubt as early
from trace_workflow.analyses.early_doubt import first_tokens
from trace_workflow.analyses.early_stopping import (
    KEPT_SHARE,
    ResampledAnswers,
    savings,
    stopping_rule,
)
from trace_workflow.analyses.study_files import StudyFiles
from trace_workflow.figures import doubt_by_tokens as figure
from trace_workflow.tables import columns
from trace_workflow.tables import early_doubt as table
from trace_workflow.tables.study_results import StudyResults
from tracecal.calibration.resampling import draw_counts, draw_splits
from tracecal.calibration.splits import make_splits
from tracecal.estimators import entropy, likelihood, trace, trace_inputs, trajectory
from tracecal.estimators.registry import ESTIMATORS
from tracecal.estimators.scores import family_scores
from tracecal.features.features import answer_features
from tracecal.io.input_files import read_yaml
from tracecal.io.traces import provenance, read_arrow

NAMES = ("seq_logp", "min_prob", "first_k_entropy", "windowed_entropy", "trace", "trace_plus")
INPUTS = {one.id: one.inputs for one in ESTIMATORS if one.id in NAMES}
COLUMNS = sorted({name for names in INPUTS.values() for name in names})
RESAMPLES = 40


def answered(task, n=60):
    made = traces(task, n)
    return made.with_columns(group_id=pl.col("example_id").str.slice(0, 3))


def measured(task, n=60):
    answers = answered(task, n)
    splits = make_splits(answers.select("example_id", "group_id"), task, 1, 3, 0.35)
    return early.measure_prefixes(
        answers, splits, task, INPUTS, "platt", seed=2, resamples=RESAMPLES
    )


@pytest.fixture(scope="module")
def found():
    both = pl.concat([measured("t"), measured("u")])
    return early.early_doubt(both, MODEL, 0.9)


def test_all_tokens_give_the_scores_and_features_of_whole_answers():
    whole = answered("t")
    seen = trace_inputs.compute_inputs(first_tokens(whole, early.PREFIXES[early.ALL]), COLUMNS)
    features = answer_features(whole)
    for name in COLUMNS:
        folder, column = name.split(".", 1)
        if folder == "features":
            assert seen[name].equals(features[column])
        for module in (likelihood, entropy, trajectory, trace):
            if folder == "scores" and column in module.SCORES:
                frame = features if module is trace else whole
                assert seen[name].equals(family_scores(frame, module.SCORES, [column])[column])


@given(st.integers(1, 20), st.lists(st.floats(0, 9, width=32), min_size=1, max_size=12))
def test_a_prefix_is_what_numpy_slices(tokens, values):
    frame = pl.DataFrame({"surprisal": [values], "entropy": [values]})
    assert first_tokens(frame, tokens)["entropy"].to_list() == [values[:tokens]]
    half = first_tokens(frame, 0.5)["surprisal"].to_list()
    assert half == [values[: int(np.ceil(len(values) / 2))]]


def test_a_score_after_one_token_is_that_tokens():
    whole = answered("t")
    seen = trace_inputs.compute_inputs(first_tokens(whole, 1), COLUMNS)
    first = np.array([float(values[0]) for values in whole["surprisal"]])
    assert np.allclose(seen["scores.seq_logp"], np.exp(-first))
    assert (seen["features.log_length"] == 0).all()


def of_scikit_learn(tokens):
    """AUROC of the sequence's log-probability after so many tokens [1 + RESAMPLES], the first of
    the sample: an answer counts as often as it was drawn, and a split as often."""
    whole = answered("t")
    splits = make_splits(whole.select("example_id", "group_id"), "t", 1, 3, 0.35)
    seen = first_tokens(whole, tokens).with_columns(score=-pl.col("surprisal").list.sum())
    drawn = draw_counts(whole.sort("example_id")["group_id"].to_list(), 2, RESAMPLES)
    counts = np.vstack([np.ones(len(whole)), drawn])
    counted = pl.DataFrame({"example_id": whole["example_id"].sort(), "drawn": counts.T})
    areas = np.full((3, 1 + RESAMPLES), np.nan)
    for split in range(3):
        part = splits.filter(split=split, part="evaluation")
        held = seen.join(part, on="example_id", how="semi").join(counted, on="example_id")
        for one, weights in enumerate(held["drawn"].to_numpy().T):
            if held.filter(weights > 0)["correct"].n_unique() == 2:
                right = held["correct"], held["score"]
                areas[split, one] = roc_auc_score(*right, sample_weight=weights)
    counting = np.where(np.isnan(areas), 0, draw_splits(3, "t", 2, RESAMPLES))
    return (counting * np.nan_to_num(areas)).sum(axis=0) / counting.sum(axis=0)


def test_the_auroc_and_the_ends_of_its_intervals_are_those_of_scikit_learn(found):
    key = {"task": "t", "prefix": "3", "metric": "auroc", "estimator": "seq_logp"}
    row = found.row(
        by_predicate=pl.all_horizontal(pl.col(k) == v for k, v in key.items()), named=True
    )
    areas, whole = of_scikit_learn(3), of_scikit_learn(99)
    assert row["value"] == pytest.approx(areas[0])
    assert [row["low"], row["high"]] == pytest.approx(np.quantile(areas[1:], [0.05, 0.95]))
    lost = whole - areas
    assert row["lost"] == pytest.approx(lost[0])
    ends = [row["lost_low"], row["lost_high"]]
    assert ends == pytest.approx(np.quantile(lost[1:], [0.05, 0.95]))
    assert row["tokens"] == np.minimum(answered("t")["surprisal"].list.len(), 3).mean()


def test_nothing_is_lost_or_saved_with_all_tokens(found):
    whole = found.filter(prefix=early.ALL)
    metrics = whole.filter(pl.col("metric").is_in(early.METRICS))
    ends = metrics.select("lost", "lost_low", "lost_high").to_numpy()
    assert (ends == 0).all() and not np.signbit(ends).any()
    saved = whole.filter(metric="saved")
    assert (saved.select("value", "low", "high").to_numpy() == 0).all()


def test_means_over_tasks_are_means(found):
    keys = ["estimator", "prefix", "metric"]
    means = found.filter(pl.col("task").is_null()).sort(keys)
    own = found.drop_nulls("task").group_by(keys).agg(pl.col("value").mean()).sort(keys)
    assert np.allclose(means["value"], own["value"])
    shares = found.filter(pl.col("prefix").str.ends_with("%"))
    assert set(shares["metric"]) == {*early.METRICS}


def test_a_rule_stops_those_who_are_not_kept_where_the_first_tokens_say_all():
    """Then every answer that is not kept is stopped, and no kept one is lost."""
    draw = np.random.default_rng(1)
    final = draw.permutation(100) / 100
    correct = draw.random(100) < final
    stop = stopping_rule(final, final, correct)
    assert (final < stop.early).sum() == round((1 - KEPT_SHARE) * 100)
    assert stop.final == stop.final_without_stops == 0.5


@given(st.data())
def test_a_rule_keeps_as_many_with_no_more_errors(data):
    n = data.draw(st.integers(1, 30))
    numbers = st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.7, 0.9]), min_size=n, max_size=n)
    probabilities = [np.array(data.draw(numbers)) for _ in range(2)]
    correct = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    own, last = probabilities
    stop = stopping_rule(own, last, correct)
    usual, kept = last >= stop.final_without_stops, (own >= stop.early) & (last >= stop.final)
    assert kept.sum() >= max(1, round(KEPT_SHARE * n))
    assert (~correct[kept]).mean() <= (~correct[usual]).mean()


def test_savings_are_those_of_the_rule_on_answers_that_it_has_not_seen():
    """The first token tells who will be kept: each stopped answer of ten tokens saves nine."""
    n = 40
    final = np.tile([0.2, 0.8], n // 2)[None]
    correct = final[0] > 0.5
    answers = pl.DataFrame(
        {
            "example_id": [f"e{place:02}" for place in range(n)],
            "group_id": [f"e{place:02}" for place in range(n)],
            "correct": correct,
        }
    )
    parts = (
        pl.when(pl.int_range(n) < 20).then(pl.lit("calibration")).otherwise(pl.lit("evaluation"))
    )
    splits = answers.select("example_id", split=0, part=parts)
    held = ResampledAnswers.of(answers, splits, "t", 1, 30)
    saved = savings(final, final, np.full(n, 10), np.full(n, 1), held)
    assert saved["saved"][0] == pytest.approx(0.5 * 9 / 10)
    assert (saved["error_change"] == 0).all() and (saved["kept_change"] == 0).all()


def test_files_give_the_same(found, tmp_path):
    paths = {kind: [] for kind in ("traces", "labels", "splits", "questions")}
    for task in ("t", "u"):
        answers = answered(task)
        groups = answers.select("example_id", "group_id")
        frames = {
            "labels": answers.select("example_id", "correct"),
            "splits": make_splits(groups, task, 1, 3, 0.35),
            "questions": groups.with_columns(role=pl.lit("evaluation")),
        }
        for kind, frame in frames.items():
            paths[kind].append(tmp_path / f"{kind}-{task}.parquet")
            frame.write_parquet(paths[kind][-1])
        path = tmp_path / f"{task}.arrow"
        kept = answers.select("example_id", "surprisal", "entropy")
        write_arrow(
            kept.to_dicts(),
            kept.to_arrow().schema,
            provenance("m", "r", "float32", "greedy", 1),
            path,
        )
        assert read_arrow(path).height == len(answers)
        paths["traces"].append(path)
    pairs = [[MODEL, "t"], [MODEL, "u"]]
    settings = {"estimators": INPUTS, "method": "platt", "bootstrap": [2, RESAMPLES, 0.9]}
    again = early.analysis(StudyFiles(paths, pairs), **settings)
    assert again.equals(found)
    assert again.schema == early.EARLY_DOUBT


def test_it_is_shown(found, tmp_path):
    entries = [entry for entry in ENTRIES if entry.id in NAMES]
    studies = {"main": {"model": MODEL, "tasks": ["t", "u"]}}
    settings = StudyResults({}, entries, {MODEL: "M"}, {"t": "T", "u": "U"}, studies)
    made = table.table(replace(settings, frames={"early_doubt": found}))
    assert made.frame.height == len(NAMES)
    assert len(made.columns) == 11
    told = read_yaml(columns.COLUMNS)
    for column in made.frame.columns:
        unit, words = columns.describe_column(column, {}, told)
        assert unit and words and "{" not in words
    assert "tokens seen: all" in columns.describe_column("auroc_after_all", {}, told)[1]
    assert "`auroc_after_3_lost`" in columns.describe_column("auroc_after_3_lost_low", {}, told)[1]
    figure.draw(found, entries).savefig(tmp_path / "shown.svg")
    assert "tokens seen" in (tmp_path / "shown.svg").read_text()
