"""Averaged tables: hand-computed means, groups, what is missing named."""

from dataclasses import replace
from statistics import fmean

import polars as pl
import pytest

from support import synthetic
from support.synthetic import MODELS, TASKS
from trace_workflow.analyses.averages import averages
from trace_workflow.tables import estimator_averages
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.estimator_rows import ESTIMATOR_ROWS, estimators_of
from tracecal.errors import InputError
from tracecal.estimators.estimator import Entry
from tracecal.estimators.registry import ESTIMATORS

ENTRIES = [Entry(one.id, one.label, one.group, one.role, one.citation) for one in ESTIMATORS]
METRICS = synthetic.study(entries=ENTRIES, splits=4)
MAIN = {"model": "tiny_a", "tasks": sorted(TASKS)}
CROSS = {"models": sorted(MODELS), "tasks": ["svamp", "trivia"]}
STUDIES = {"main": MAIN, "cross": CROSS}


def table(name, entries=ENTRIES, studies=STUDIES, requires=None, **more):
    chosen = [entry for entry in entries if entry.id in estimators_of(name)]
    own = dict(studies)
    if name != "ablation":
        own.pop("cross", None)
    more = {"table": name, "requires": requires or {}} | more
    given = synthetic.settings(chosen, MODELS, TASKS, more, **own)
    means, right = averages(METRICS, studies), synthetic.accuracy(sorted(MODELS), sorted(TASKS))
    frames = {"averages": means, "accuracy": right}
    return estimator_averages.table(replace(given, frames=frames))


def rows_of(made):
    return {
        row["estimator"]: row
        for row in pl.read_csv(render_csv(made).encode()).iter_rows(named=True)
    }


def mean(estimator, metric, models, tasks):
    chosen = METRICS.filter(
        pl.col("model").is_in(models),
        pl.col("task").is_in(tasks),
        estimator=estimator,
        metric=metric,
    )
    return fmean(chosen["value"])


def test_main_and_cross_values_are_means_over_splits_tasks_and_models():
    rows = rows_of(table("ablation"))
    for estimator in ("trace_plus", "entropy_local_only"):
        for metric in ("brier", "auroc"):
            main = mean(estimator, metric, ["tiny_a"], MAIN["tasks"])
            cross = mean(estimator, metric, CROSS["models"], CROSS["tasks"])
            assert rows[estimator][f"main_{metric}"] == pytest.approx(main)
            assert rows[estimator][f"cross_{metric}"] == pytest.approx(cross)
    assert rows["trace_plus"]["cross_models"] == "tiny_a tiny_b tiny_c"


def test_the_spread_is_that_of_the_split_means():
    rows = rows_of(table("operator_ablation"))
    chosen = METRICS.filter(model="tiny_a", estimator="operator_d", metric="auroc")
    by_split = chosen.group_by("split").agg(pl.col("value").mean())
    assert rows["operator_d"]["auroc_sd"] == pytest.approx(by_split["value"].std())


def test_rows_follow_the_definition_and_a_missing_estimator_is_named():
    some = [entry for entry in ENTRIES if entry.id != "learned_dml"]
    made = table("operator_ablation", some)
    assert list(rows_of(made)) == ["operator_d", "operator_m", "operator_l", "trace"]
    assert "Not in this run: learned_dml." in made.legend


def test_without_a_cross_study_only_the_main_columns_stand():
    made = table("ablation", studies={"main": MAIN})
    assert [column.group for column in made.columns if column.group] == ["Main", "Main"]


def test_what_an_estimator_needs_is_said():
    rows = rows_of(table("broader_uq", requires={"trace": "", "trace_plus": "C"}))
    assert rows["trace"]["requires"] is None
    assert rows["trace_plus"]["requires"] == "C"


def test_a_table_of_a_subset_says_so():
    assert "subset" not in " ".join(table("broader_uq").notes)
    told = " ".join(table("broader_uq", subset=60).notes)
    assert "a random subset of at most 60 evaluation answers per task" in told


def test_none_of_its_estimators_is_an_error():
    with pytest.raises(InputError, match="metrics hold no row"):
        table("operator_ablation", [entry for entry in ENTRIES if entry.id == "seq_logp"])


def test_every_definition_names_estimators_or_future_ones_by_id():
    for groups in ESTIMATOR_ROWS.values():
        listed = [one for group in groups for one in group]
        assert len(listed) == len(set(listed))
        assert {"trace", "trace_plus"} & set(listed)
