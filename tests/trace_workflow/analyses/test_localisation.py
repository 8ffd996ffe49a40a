"""Where risk lies and where answers are wrong, on traces made so that it is known."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from support.arrow_files import write_arrow
from trace_workflow.analyses import localisation, part_scores
from trace_workflow.analyses.part_metrics import (
    auroc_within_answers,
    auroc_within_strata,
    found_in_review,
    lowest_wrong,
)
from trace_workflow.analyses.part_scores import PART, WHOLE
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.io.traces import read_traces
from tracecal.statistics.resampling import Resampling, draw_counts

PAIRS = [["m", "facts"]]
BOOTSTRAP = [1, 60, 0.95]
NAMES = ("capital", "currency", "continent")
WHOLE_SCHEMA = pa.schema(
    {
        "example_id": pa.string(),
        "surprisal": pa.list_(pa.float32()),
        "entropy": pa.list_(pa.float32()),
    }
)
CUT = pa.schema([*WHOLE_SCHEMA, ("start", pa.int32()), ("end", pa.int32())])


def files(folder, placed, answers=60, seed=1):
    """The files of a model that made `answers` answers of three parts; `placed(rng, wrong)` gives
    the risk of each part's tokens. Structure, three tokens before each part, has none.
    """
    rng = np.random.default_rng(seed)
    wholes, cut, rows = [], [], []
    for number in range(answers):
        parent, risk = f"a{number:03}", []
        wrong = rng.random(len(NAMES)) < 0.5
        for name, is_wrong, level in zip(NAMES, wrong, placed(rng, wrong), strict=True):
            start = len(risk) + 3
            risk += [0.0] * 3 + [float(level)] * int(rng.integers(1, 6))
            place = {"start": start, "end": len(risk)}
            name = f"{parent}/{name}"
            rows.append((name, parent, parent, name.split("/")[1], "evaluation", not is_wrong))
            cut.append({"example_id": name, "entropy": [1.0], "surprisal": [1.0]} | place)
        wholes.append({"example_id": parent, "surprisal": risk, "entropy": risk})
    columns = ("example_id", "parent_id", "group_id", "part", "role", "correct")
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    missing = frame.head(1).with_columns(example_id=pl.lit("a000/x"), role=pl.lit("unanswered"))
    splits = frame.select("example_id", split=pl.lit(0)).with_columns(
        part=pl.when(pl.int_range(pl.len()) < pl.len() // 3)
        .then(pl.lit("calibration"))
        .otherwise(pl.lit("evaluation"))
    )
    frames = {
        "questions": pl.concat([frame.drop("correct"), missing.drop("correct")]),
        "labels": frame.select("example_id", "correct"),
        "splits": splits,
    }
    paths = {name: [f"{folder}/{name}.parquet"] for name in frames}
    for name, made in frames.items():
        made.write_parquet(paths[name][0])
    for name, made, schema in (("traces", cut, CUT), ("wholes", wholes, WHOLE_SCHEMA)):
        paths[name] = [f"{folder}/{name}.arrow"]
        write_arrow(made, schema, {"schema_version": "1"}, paths[name][0])
    return paths


def located(folder, placed, **options):
    paths = files(folder, placed, **options)
    found = localisation.analysis(StudyFiles(paths, PAIRS), bootstrap=BOOTSTRAP)
    return {row["pointer"]: row for row in found.iter_rows(named=True)}


def test_risk_on_the_wrong_parts_is_found_always(tmp_path):
    found = located(tmp_path, lambda rng, wrong: np.where(wrong, 2.0, 0.0))
    for pointer in localisation.POINTERS:
        assert found[pointer]["value"] == 1.0
        assert (found[pointer]["low"], found[pointer]["high"]) == (1.0, 1.0)
    assert 0.3 < found["random_part"]["value"] < 0.7
    # Structure has no risk: most tokens lie outside of the wrong parts.
    assert found["random_token"]["value"] < found["random_part"]["value"]
    row = found["window"]
    assert (row["answers"], row["parts"], row["missing"], row["without_parts"]) == (60, 180, 1, 0)
    assert row["pointed"] == row["mixed"] < 60


def test_risk_that_knows_nothing_of_truth_is_chance(tmp_path):
    def placed(rng, wrong):
        return rng.permutation([3.0, 1.0, 0.5])

    found = located(tmp_path, placed, answers=600)
    for pointer in localisation.POINTERS:
        assert found[pointer]["low"] <= found["random_part"]["value"] <= found[pointer]["high"]


def test_a_name_that_always_fails_is_the_row_to_beat(tmp_path):
    paths = files(tmp_path, lambda rng, wrong: np.ones(3))
    labels = pl.read_parquet(paths["labels"][0])
    wrong = pl.col("example_id").str.ends_with("currency")
    labels.with_columns(correct=~wrong).write_parquet(paths["labels"][0])
    found = localisation.analysis(StudyFiles(paths, PAIRS), bootstrap=BOOTSTRAP)
    values = dict(found.select("pointer", "value").iter_rows())
    assert values["failing_name"] == 1
    assert values["random_part"] == pytest.approx(1 / 3)


def test_windows_by_hand():
    """Ten tokens; the peak of four covers the end of a right part and the whole of a wrong one."""
    parts = pl.DataFrame(
        {
            "example_id": ["a/x", "a/y"],
            "parent_id": "a",
            "group_id": "a",
            "part": ["x", "y"],
            "correct": [True, False],
            "start": [1, 5],
            "end": [4, 6],
        }
    )
    risk = [0.0, 0.0, 0.0, 1.0, 0.5, 2.0, 0.5, 0.0, 0.0, 0.0]
    traces = pl.DataFrame({"example_id": ["a"], "surprisal": [risk], "entropy": [risk]})
    answers = localisation.mixed_answers(parts, traces)
    assert answers["peak"].to_list() == [3]
    failing = pl.DataFrame({"parent_id": "a", "part": ["x", "y"], "split": 0, "rate": [0.5, 0.5]})
    hits = {
        name: value.item() for name, value in localisation.pointer_hits(answers, failing).items()
    }
    # Of seven windows those that begin at 2 to 5 hold the wrong token, which outweighs the 1.0; the
    # one at 6 holds no part.
    assert hits == {
        "window": 1.0,
        "max_surprisal": 1.0,
        "max_entropy": 1.0,
        "random_window": pytest.approx(4 / 7),
        "random_token": 0.1,
        "random_part": 0.5,
        "failing_name": 0.5,
    }


LISTS = st.lists(
    st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3), st.integers(0, 2)),
    min_size=1,
    max_size=25,
)


@given(LISTS)
def test_pairs_and_reviews_against_a_count_one_by_one(rows):
    """Integer weights count as copies of an answer."""
    score, correct, answers, weights = (np.array(column) for column in zip(*rows, strict=True))
    score, answers = score.astype(float), np.unique(answers, return_inverse=True)[1]
    weights = weights[answers].astype(float)[None]  # the same for an answer's parts
    copies = [
        (s, c, (a, copy), a)
        for s, c, a, w in zip(score, correct, answers, weights[0], strict=True)
        for copy in range(int(w))
    ]

    def share(same):
        ranked = [
            (one[0] > other[0]) + 0.5 * (one[0] == other[0])
            for one in copies
            for other in copies
            if one[1] and not other[1] and same(one, other)
        ]
        return np.mean(ranked) if ranked else np.nan

    in_answers = auroc_within_answers(score, correct, weights, answers)
    expected = share(lambda one, other: one[2] == other[2])
    np.testing.assert_allclose(in_answers, [expected])
    within = auroc_within_strata(score, correct, weights, answers % 2)
    expected = share(lambda one, other: one[3] % 2 == other[3] % 2)
    np.testing.assert_allclose(within, [expected])

    hits = []
    for answer in {copy[2] for copy in copies}:
        own = [copy for copy in copies if copy[2] == answer]
        if 0 < sum(copy[1] for copy in own) < len(own):
            least = min(copy[0] for copy in own)
            hits.append(np.mean([not copy[1] for copy in own if copy[0] == least]))
    expected = np.mean(hits) if hits else np.nan
    np.testing.assert_allclose(lowest_wrong(score, correct, weights, answers), [expected])

    errors = sum(not copy[1] for copy in copies)
    found = found_in_review(score, correct, weights, 1.0)
    np.testing.assert_allclose(found, [1.0 if errors else np.nan])


def test_a_review_takes_equal_scores_in_equal_shares():
    score, correct = np.array([0.1, 0.2, 0.2, 0.2, 0.9]), np.array([0, 0, 1, 1, 1], dtype=bool)
    found = found_in_review(score, correct, np.ones((1, 5)), 0.4)
    # The lowest, and one third of each of the next three
    assert found == pytest.approx((1 + 1 / 3) / 2)


def test_the_score_of_a_part_and_that_of_its_answer(tmp_path):
    paths = files(tmp_path, lambda rng, wrong: np.ones(3))
    labels, questions = (pl.read_parquet(paths[name][0]) for name in ("labels", "questions"))
    parts = questions.filter(role="evaluation").join(labels, on="example_id")
    rng = np.random.default_rng(3)
    noisy = parts["correct"].cast(pl.Float64) + rng.normal(size=parts.height)
    score = parts.select("example_id", seq_logp=noisy)
    score.write_parquet(tmp_path / "scores.parquet")
    whole = parts.group_by("parent_id").agg(seq_logp=pl.col("correct").mean())
    whole.rename({"parent_id": "example_id"}).write_parquet(tmp_path / "whole.parquet")
    predicted = score.select(
        "example_id",
        estimator=pl.lit("trace_plus"),
        split=pl.lit(0),
        probability=1 / (1 + (-pl.col("seq_logp")).exp()),
    )
    predicted.write_parquet(tmp_path / "predictions.parquet")
    paths |= {
        "scores": [str(tmp_path / "scores.parquet")],
        "predictions": [str(tmp_path / "predictions.parquet")],
        "whole_scores": [str(tmp_path / "whole.parquet")],
    }
    found = part_scores.analysis(
        StudyFiles(paths, PAIRS),
        scored=["seq_logp"],
        learned=["trace_plus"],
        bootstrap=BOOTSTRAP,
    )

    def value(estimator, scored, metric):
        return found.filter(estimator=estimator, scored=scored, metric=metric)["value"].item()

    own = roc_auc_score(parts["correct"], noisy)
    assert value("seq_logp", PART, "auroc") == pytest.approx(own)
    assert value("trace_plus", PART, "auroc") == pytest.approx(own)
    assert value("seq_logp", WHOLE, "auroc_same_answer") == 0.5
    assert value("seq_logp", WHOLE, "auroc") > 0.5
    assert found.filter(estimator="trace_plus", scored=WHOLE).is_empty()
    assert set(found["n"]) == {180}
    bounds = found.filter(estimator="seq_logp", metric="auroc", scored=PART)
    seed, resamples, level = BOOTSTRAP
    areas = [
        roc_auc_score(parts["correct"], noisy, sample_weight=weights)
        for weights in draw_counts(parts["group_id"].to_list(), seed, resamples)
    ]
    ends = np.quantile(areas, [(1 - level) / 2, (1 + level) / 2])
    assert bounds.select("low", "high").row(0) == pytest.approx(tuple(ends))


def test_entropies_that_are_unknown_leave_surprisals(tmp_path):
    paths = files(tmp_path, lambda rng, wrong: np.where(wrong, 2.0, 0.0))
    traces = read_traces(paths["wholes"][0]).with_columns(entropy=None).to_dicts()
    metadata = {"schema_version": "1", "without_entropy": "all"}
    write_arrow(traces, WHOLE_SCHEMA, metadata, paths["wholes"][0])
    found = localisation.analysis(StudyFiles(paths, PAIRS), bootstrap=BOOTSTRAP)
    rows = {row["pointer"]: row for row in found.iter_rows(named=True)}
    assert (rows["window"]["value"], rows["window"]["pointed"]) == (None, 0)
    assert rows["max_surprisal"]["value"] == 1.0


def test_the_interval_is_of_groups():
    hits = {"window": np.repeat([0.0, 1.0], 50)}
    alone = localisation.localisation(hits, [f"g{n}" for n in range(100)], Resampling(1, 400, 0.9))
    few = localisation.localisation(
        hits, [f"g{n // 10}" for n in range(100)], Resampling(1, 400, 0.9)
    )
    width = [(frame["high"] - frame["low"]).item() for frame in (alone, few)]
    assert width[1] > 2 * width[0]
