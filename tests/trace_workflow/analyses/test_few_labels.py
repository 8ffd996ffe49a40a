"""The comparison at fixed numbers of labels, on answers made up here."""

from dataclasses import replace

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler

from support.synthetic import ENTRIES
from trace_workflow.analyses.few_labels import (
    FEW_LABELS,
    ORACLE,
    analysis,
    few_labels,
    resample_sizes,
    split_at_size,
)
from trace_workflow.analyses.study_files import StudyFiles
from trace_workflow.tables import few_labels as table
from trace_workflow.tables.study_results import StudyResults
from tracecal.estimators.estimator import PICKED
from tracecal.fits.predictions import calibrate_all
from tracecal.io.files import write_parquet
from tracecal.statistics.resampling import draw_counts, draw_splits
from tracecal.statistics.splits import make_splits

N, SPLITS = 130, 3
BASELINES = ["seq_logp", "len_norm_logp", "mean_prob"]
SHOWN = ["trace_plus", "seq_logp", PICKED]
ESTIMATORS = {name: [f"scores.{name}"] for name in BASELINES}
ESTIMATORS |= {"trace_plus": ["features.a", "features.b"]}
SETTINGS = {
    "estimators": ESTIMATORS,
    "own_fits": {},
    "row_ids": SHOWN,
    "baselines": BASELINES,
    "method": "platt",
    "seed": 3,
    "resamples": 50,
}


def drawn(n, seed):
    """Answers whose scores and features say something of correctness, and their splits."""
    rng = np.random.default_rng(seed)
    ids = [f"e{place:03}" for place in range(n)]
    cause = rng.normal(size=n)
    columns = sorted({column for columns in ESTIMATORS.values() for column in columns})
    answers = pl.DataFrame(
        {
            "example_id": ids,
            "group_id": [name[:-1] for name in ids],
            "correct": rng.random(n) < 1 / (1 + np.exp(-cause)),
            **{name: cause + 2 * rng.normal(size=n) for name in columns},
        }
    )
    groups = answers.select("example_id", "group_id")
    return answers, make_splits(groups, "t", 1, SPLITS, 0.35)


def measured(n, task="t", seed=5):
    answers, splits = drawn(n, seed)
    return resample_sizes(
        answers,
        splits.select("example_id", "split", "rank"),
        model="m",
        task=task,
        **SETTINGS,
    )


def written(answers, splits, folder):
    """The files of a pair that `analysis` reads, as a run writes them."""
    groups = answers.select("example_id", "group_id")
    frames = {
        "labels": answers.select("example_id", "correct", error_kind=pl.lit(None, pl.String)),
        "questions": groups.with_columns(role=pl.lit("evaluation")),
        "splits": splits,
        **{
            kind: answers.select(
                "example_id", cs.starts_with(kind).name.map(lambda n: n[n.index(".") + 1 :])
            )
            for kind in ("scores", "features")
        },
    }
    for kind, frame in frames.items():
        write_parquet(frame, folder / f"{kind}.parquet")
    return {kind: [str(folder / f"{kind}.parquet")] for kind in frames}


def test_the_analysis_of_written_files_fits_on_as_many_labels_as_it_says(tmp_path, monkeypatch):
    """In the splits' file more answers calibrate than here: those of the main protocol."""
    answers, splits = drawn(190, 5)
    assert splits.filter(part="calibration", split=0).height > 60
    sizes = []

    def counting(answers, divided, *options):
        sizes.append(divided.filter(part="calibration").group_by("split").len()["len"].to_list())
        return calibrate_all(answers, divided, *options)

    monkeypatch.setattr("trace_workflow.analyses.few_labels.calibrate_all", counting)
    found = analysis(
        StudyFiles(written(answers, splits, tmp_path), [("m", "t")]), level=0.95, **SETTINGS
    )
    assert sizes == [[20] * SPLITS, [50] * SPLITS]
    assert found.equals(few_labels(measured(190), SHOWN, BASELINES, 0.95))


@pytest.fixture(scope="module")
def found():
    both = pl.concat([measured(N), measured(60, "small", seed=8)])
    return few_labels(both, SHOWN, BASELINES, 0.95)


def test_every_size_is_evaluated_on_the_same_answers_and_groups_stay_whole():
    splits = drawn(N, 5)[1].select("example_id", "split", "rank")
    small, large = (split_at_size(splits, size, 50) for size in (20, 50))
    evaluated = [part.filter(part="evaluation").drop("part") for part in (small, large)]
    assert evaluated[0].equals(evaluated[1])
    calibrating = small.filter(part="calibration", split=0)
    assert (calibrating.height, set(calibrating["rank"])) == (20, {0, 1})


def of_scikit_learn(size, estimator):
    """By split of task `t`: the ids evaluated, whether they are correct, their probabilities and
    what ranks them."""
    answers, splits = drawn(N, 5)
    columns = ESTIMATORS[estimator]
    for split in range(SPLITS):
        parts = split_at_size(splits.drop("part").filter(split=split), size, 50)
        fitted, held = (
            answers.join(parts.filter(part=part), on="example_id", how="semi")
            for part in ("calibration", "evaluation")
        )
        scaler = StandardScaler().fit(fitted.select(columns).to_numpy())
        x, y = (scaler.transform(part.select(columns).to_numpy()) for part in (fitted, held))
        model = LogisticRegression(tol=1e-10).fit(x, fitted["correct"].to_numpy())
        probability = model.predict_proba(y)[:, 1]
        ranking = probability if estimator == "trace_plus" else held[columns[0]].to_numpy()
        yield held["example_id"], held["correct"].to_numpy(), probability, ranking


@pytest.mark.parametrize("size", [20, 50])
@pytest.mark.parametrize("estimator", ["seq_logp", "trace_plus"])
def test_values_are_those_of_scikit_learn(found, size, estimator):
    briers, areas = [], []
    for _, correct, probability, ranking in of_scikit_learn(size, estimator):
        briers.append(brier_score_loss(correct, probability))
        areas.append(roc_auc_score(correct, ranking))
    own = found.filter(labels=size, task="t", estimator=estimator)
    assert own.filter(metric="brier")["value"].item() == pytest.approx(np.mean(briers), abs=1e-6)
    assert own.filter(metric="auroc")["value"].item() == pytest.approx(np.mean(areas), abs=1e-9)


@pytest.mark.parametrize("metric", ["brier", "auroc"])
def test_the_ends_of_intervals_are_those_of_scikit_learn_on_the_same_resamples(found, metric):
    """An answer counts as often as it was drawn, and a split as often."""
    resamples = SETTINGS["resamples"]
    answers, _ = drawn(N, 5)
    counts = draw_counts(answers["group_id"].to_list(), SETTINGS["seed"], resamples)
    counted = dict(zip(answers["example_id"], counts.T, strict=True))
    in_resample = draw_splits(SPLITS, "t", SETTINGS["seed"], resamples)[:, 1:]

    def values(estimator):
        by_split = np.zeros((SPLITS, resamples))
        for split, (ids, correct, *scores) in enumerate(of_scikit_learn(50, estimator)):
            for one in range(resamples):
                weights = [counted[name][one] for name in ids]
                measure = {"brier": brier_score_loss, "auroc": roc_auc_score}[metric]
                own = scores[metric == "auroc"]
                by_split[split, one] = measure(correct, own, sample_weight=weights)
        return (in_resample * by_split).sum(axis=0) / in_resample.sum(axis=0)

    sign = {"brier": -1, "auroc": 1}[metric]
    differences = sign * (values("trace_plus") - values("seq_logp"))
    own = found.filter(labels=50, task="t", estimator="seq_logp", metric=metric)
    ends = [own["low"].item(), own["high"].item()]
    assert ends == pytest.approx(np.quantile(differences, [0.025, 0.975]), abs=1e-6)


def test_a_task_counts_at_the_sizes_that_are_half_of_its_answers_at_most(found):
    by_task = found.drop_nulls("task").select("labels", "task").unique().sort("labels", "task")
    assert by_task.rows() == [(20, "small"), (20, "t"), (50, "t")]
    means = found.filter(pl.col("task").is_null())
    assert dict(means.select("labels", "tasks").unique().iter_rows()) == {20: 2, 50: 1}


def test_differences_are_trace_plus_less_the_others_and_the_oracle_is_a_point(found):
    for row in found.iter_rows(named=True):
        key = {name: row[name] for name in ("labels", "metric")}
        same = found.filter(pl.col("task").eq_missing(pl.lit(row["task"])), **key)
        plus = same.filter(estimator="trace_plus")["value"].item()
        sign = -1 if row["metric"] == "brier" else 1
        assert row["difference"] == pytest.approx(sign * (plus - row["value"]))
        if row["estimator"] == ORACLE:
            assert row["low"] is row["high"] is None
            named = same.filter(estimator="seq_logp")["value"].item()
            assert sign * row["value"] >= sign * named
        else:
            assert row["low"] <= row["difference"] + 0.2
            assert row["low"] <= row["high"]


def settings():
    shown = [entry for entry in ENTRIES if entry.id in SHOWN]
    return StudyResults(
        models={"m": "M"},
        tasks={"t": "Arithmetic", "small": "Small"},
        studies={"main": {"model": "m", "tasks": ["t", "small"]}},
        estimators=shown,
    )


def test_it_is_shown(found):
    made = table.table(replace(settings(), frames={"few_labels": found}))
    assert made.frame["label"].to_list()[-2:] == ["Selected baseline", "Best baseline (oracle)"]
    assert {"brier_at_20", "auroc_at_50_low"} <= {*made.frame.columns}
    assert any("at 50 labels: Arithmetic" in note for note in made.notes)


def test_without_a_task_that_is_large_enough_it_says_so():
    nothing = few_labels(measured(30), SHOWN, BASELINES, 0.95)
    assert nothing.schema == FEW_LABELS
    assert nothing.is_empty()
    made = table.table(replace(settings(), frames={"few_labels": nothing}))
    assert made.footnotes == (table.NOTHING,)
