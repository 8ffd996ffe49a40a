"""What the demo is worth, checked on its results where `make demo` has made them."""

import csv

import polars as pl
import pytest

from maintenance import pictures
from tests.tracecal.explorer.test_page import unpacked
from trace_workflow.commands.headline import outcome
from trace_workflow.config.estimator_list import costly
from trace_workflow.config.run import load_run
from trace_workflow.contents.contents import plan
from trace_workflow.tables.finding import OUTCOMES
from tracecal.estimators.registry import ESTIMATORS, IDS
from tracecal.io.files import read_checked, read_json, read_parquet
from tracecal.io.input_files import read_yaml

CONFIG = "config/config.yaml"
RUN = load_run(read_yaml(pictures.ROOT / CONFIG), CONFIG, pictures.ROOT)
PLAN = plan(RUN)
FOLDER = pictures.ROOT / "results" / RUN.config.run
if not (FOLDER / "findings.txt").exists():
    pytest.skip("the demo has not been run here: make demo", allow_module_level=True)
if (FOLDER / "config.yaml").read_text(encoding="utf-8") != RUN.resolved:
    pytest.skip("the demo here is of another configuration: make demo", allow_module_level=True)

STUDY = RUN.config.study
MAIN, SPLITS = STUDY.main.model, RUN.config.splits.count
PAIRS = sorted(STUDY.pairs())
WHOLE = [(model, task) for model, task in PAIRS if task not in RUN.parents]
IMPROVEMENT = ("value", "reference", "difference", "low", "high", "level")


def analysis(name):
    return read_parquet(FOLDER / f"analyses/{name}.parquet")


def rows(table):
    with (FOLDER / f"tables/{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def evaluated_labels(model, task):
    """The labels of a pair, without those of rows to train on."""
    splits = read_parquet(FOLDER / f"splits/{task}.parquet").select("example_id").unique()
    return read_parquet(FOLDER / f"labels/{model}/{task}.parquet").join(splits, on="example_id")


def expected_files():
    """What the plan promises a reader."""
    for name in (*PLAN.tables, "costs"):
        yield from (f"tables/{name}.{kind}" for kind in ("tex", "csv", "html"))
    for name in PLAN.beside_paper:
        yield from (f"tables/{name}_vs_paper.{kind}" for kind in ("csv", "html"))
    for name in PLAN.figures:
        yield from (f"figures/{name}.{kind}" for kind in ("pdf", "svg"))
    yield from ("tables/references.bib", "tables/README.md", "explorer.html", "findings.csv")


def test_each_planned_table_figure_and_page_is_there():
    files = [FOLDER / name for name in expected_files()]
    assert [path.name for path in files if not path.exists() or not path.stat().st_size] == []


@pytest.mark.parametrize(("model", "task"), PAIRS)
def test_each_pair_has_a_calibrator_of_its_labels_with_every_estimator(model, task):
    fits = read_json(FOLDER / f"calibrators/{model}/{task}.json")
    measured = read_parquet(FOLDER / f"metrics/{model}/{task}.parquet")["estimator"]
    assert {"seq_logp", "trace", "trace_plus"} <= {*measured} & {*IDS} <= fits.keys()
    labels = evaluated_labels(model, task)
    assert (fits["fitted_on"]["model"], fits["fitted_on"]["task"]) == (model, task)
    assert fits["fitted_on"]["n"] == labels.height
    assert fits["fitted_on"]["base_rate"] == pytest.approx(labels["correct"].mean())


@pytest.mark.parametrize(("model", "task"), WHOLE)
def test_as_many_questions_are_answered_as_the_configuration_asks(model, task):
    (entry,) = (entry for entry in RUN.config.tasks if entry.slug == task)
    asked = read_parquet(FOLDER / f"tasks/{task}.parquet").filter(role="evaluation")
    labels = evaluated_labels(model, task)
    assert {*asked["example_id"]} == {*labels["example_id"]}
    assert 100 <= labels.height <= (entry.limit or labels.height)


@pytest.mark.parametrize(("model", "task"), PAIRS)
def test_accuracy_is_that_of_the_labels_and_moderate_and_every_part_has_both_classes(model, task):
    labels = evaluated_labels(model, task)
    splits = read_parquet(FOLDER / f"splits/{task}.parquet")
    accuracy = analysis("accuracy").filter(model=model, task=task).row(0, named=True)
    assert (accuracy["n"], accuracy["correct"]) == (labels.height, labels["correct"].sum())
    assert accuracy["accuracy"] == labels["correct"].mean()
    low, high = (0.15, 0.85) if model == MAIN else (0.07, 0.9)
    assert low <= accuracy["accuracy"] <= high
    judged = splits.join(labels, on="example_id", validate="m:1")
    # Parts that an answer lacks have no label.
    unanswered = accuracy["unanswered"] if task in RUN.parents else 0
    assert judged.height == splits.height - SPLITS * unanswered
    classes = judged.group_by("split", "part").agg(pl.col("correct").n_unique())
    assert classes.height == 2 * SPLITS
    assert (classes["correct"] == 2).all()


def test_what_costs_most_is_compared_with_everything_else_on_the_same_answers():
    accuracy = analysis("subset_accuracy")
    assert accuracy.select("model", "n").unique().rows() == [(MAIN, STUDY.broader.answers)]
    metrics = read_parquet(FOLDER / "subset/metrics.parquet").filter(model=MAIN)
    assert set(IDS) <= set(metrics["estimator"])
    # A small model does not state its confidence in every answer.
    stated = pl.col("estimator") == "verbalized"
    sizes = metrics.filter(~stated).group_by("task", "split").agg(pl.col("n").n_unique())
    assert (sizes["n"] == 1).all()
    assert metrics.filter(stated)["n"].min() > 5


def test_answers_are_short_enough_that_risk_can_be_local():
    lengths = pl.concat(
        pl.read_ipc(FOLDER / f"traces/{model}/{task}.arrow").select(
            pl.col("token_ids").list.len().cast(pl.Float64)
        )
        for model, task in WHOLE
        if task not in RUN.parents.values()
    )["token_ids"]
    assert lengths.min() >= 1
    assert lengths.quantile(0.98) <= 40  # what the tasks allow
    assert lengths.std() > 5


def test_nothing_is_undefined():
    metrics = read_parquet(FOLDER / "metrics.parquet")
    assert metrics["value"].null_count() == 0
    of_traces = {estimator.id for estimator in ESTIMATORS if not costly(estimator)}
    assert of_traces <= set(metrics.filter(model=MAIN)["estimator"])
    broader = {estimator.id for estimator in ESTIMATORS if estimator.role == "broader"}
    others = metrics.filter(pl.col("model") != MAIN, ~pl.col("task").is_in([*RUN.parents]))
    for _, pair in others.group_by("model", "task"):
        assert of_traces - broader <= set(pair["estimator"])
        assert not broader & set(pair["estimator"])
    assert metrics["split"].n_unique() == SPLITS


def test_the_main_table_has_the_means_over_all_splits():
    metrics = read_parquet(FOLDER / "metrics.parquet").filter(model=MAIN)
    means = metrics.group_by("task", "estimator", "metric").agg(pl.col("value").mean())
    table = {row["estimator"]: row for row in rows("main_comparison")}
    compared = 0
    for task, estimator, metric, value in means.iter_rows():
        shown = table.get(estimator, {}).get(f"{task}_{metric}")
        if shown is not None:
            assert float(shown) == pytest.approx(value), (task, estimator, metric)
            compared += 1
    assert compared >= 2 * len(STUDY.main.tasks) * sum(name in IDS for name in table)


def test_the_findings_are_those_of_the_analyses():
    with (FOLDER / "findings.csv").open(encoding="utf-8", newline="") as file:
        findings = list(csv.DictReader(file))
    sentences = read_checked(FOLDER / "findings.txt").splitlines()
    assert [finding["sentence"] for finding in findings] == sentences
    topics = [finding["topic"] for finding in findings]
    assert "problem" not in topics
    assert topics.index("guarantee") == 0 and {"run", "answers", "comparison"} <= {*topics}
    assert {finding["table"] for finding in findings} <= {*PLAN.tables}
    improvements = analysis("improvements")
    compared = [finding for finding in findings if finding["outcome"]]
    assert {finding["outcome"] for finding in compared} <= {*OUTCOMES}
    for finding in compared:
        keys = {key: finding[key] or None for key in ("task", "metric", "estimator", "against")}
        alike = improvements.filter(
            *(pl.col(key).eq_missing(value) for key, value in keys.items())
        ).select(IMPROVEMENT)
        numbers = tuple(float(finding[name]) for name in IMPROVEMENT if name in finding)
        assert any(numbers == pytest.approx(row) for row in alike.iter_rows()), finding["sentence"]
        assert f"{float(finding['difference']):.3f}".lstrip("-") in finding["sentence"]


def test_the_headline_has_the_guarantee_that_was_fixed_beforehand(monkeypatch):
    monkeypatch.chdir(pictures.ROOT)
    lines = outcome(CONFIG).split("\n")
    assert len(lines) <= 12
    text = " ".join(" ".join(lines).split())
    assert read_checked(FOLDER / "findings.txt").splitlines()[0] in text


def test_the_explorer_holds_every_answer():
    shown = unpacked(read_checked(FOLDER / "explorer.html"))
    counts = analysis("accuracy").filter(~pl.col("task").is_in([*RUN.parents]))
    assert len(shown["answers"]["task"]) >= counts["n"].sum()
    assert {task["id"] for task in shown["named"]["task"]} == {task for _, task in PAIRS}


@pytest.mark.parametrize("page", pictures.RUNS["demo"].pages)
def test_a_page_can_tell_what_the_demo_found(page):
    text = (pictures.ROOT / page).read_text(encoding="utf-8")
    described = pictures.described(text, FOLDER)
    told = " ".join(described.split())
    guarantee = f"**{read_checked(FOLDER / 'findings.txt').splitlines()[0]}**"
    assert (guarantee in told) == ("<!-- first finding" in text)
    means = analysis("averages").filter(pl.col("task").is_null(), study="main", metric="brier")
    brier = f"| Brier score | {means.filter(estimator='trace_plus')['mean'].item():.3f} |"
    assert (brier in described) == (f"<!-- comparison of {FOLDER.name}:" in text)
    assert pictures.described(described, FOLDER) == described
