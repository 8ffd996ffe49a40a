"""How many labels are needed: the same tasks at each number, and differences with intervals."""

import polars as pl
import pytest

from trace_workflow.figures import figure_style
from trace_workflow.figures.labels_needed import draw, message, shared_means
from tracecal.estimators.registry import ESTIMATORS

LABELS = {"trace_plus": "TRACE+", "log_ridge": "Log ridge", "seq_logp": "SeqLogP"}
ENTRIES = [entry for entry in ESTIMATORS if entry.id in {*LABELS, "len_norm_logp"}]


def means(low=-0.02, high=0.01):
    rows = [
        (size, task, name, metric, 0.2 - size / 1000 + 0.01 * place, 0.01 * place, *ends, n_tasks)
        for size, n_tasks in ((20, 3), (50, 3), (100, 3), (200, 1))
        for task in (None, "cities")
        for metric in ("brier", "auroc")
        for place, (name, ends) in enumerate(
            {
                "log_ridge": (low, high),
                "trace_plus": (0.0, 0.0),
                "seq_logp": (0.01, 0.03),
                "len_norm_logp": (0.01, 0.03),
                "oracle": (None, None),
            }.items()
        )
    ]
    names = "labels task estimator metric value difference low high tasks".split()
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(level=0.95)


def test_a_number_of_labels_that_some_task_lacks_is_left_out():
    shared = shared_means(means())
    assert shared["labels"].unique().sort().to_list() == [20, 50, 100]
    assert shared["task"].null_count() == shared.height and {*shared["metric"]} == {"brier"}
    for axes in draw(means(), ENTRIES).axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["20", "50", "100"]
        assert axes.get_xlabel() == "labelled answers of a task, mean over 3 tasks"


def test_the_title_says_whether_the_interval_tells_the_best_fit_from_trace_plus():
    tie = "Lowest Brier score: Log ridge with 20 labels (a tie with TRACE+); Log ridge with 100 "
    assert message(shared_means(means()), LABELS) == f"{tie}labels (a tie with TRACE+)"
    better = message(shared_means(means(high=-0.001)), LABELS)
    assert better.count("(better than TRACE+)") == 2
    alone = shared_means(means().filter(pl.col("estimator") != "log_ridge"))
    assert message(alone, LABELS).endswith("TRACE+ with 20 labels; TRACE+ with 100 labels")


def test_each_difference_has_its_interval_and_the_oracle_has_none():
    _, differences = draw(means(), ENTRIES).axes
    spans = [part.get_segments() for part in differences.collections]
    assert [len(segments) for segments in spans] == [3, 3, 3]
    assert sorted(spans[0][0][:, 1]) in (pytest.approx([-0.02, 0.01]), pytest.approx([0.01, 0.03]))


def test_two_scores_of_a_family_are_told_apart():
    figure = draw(means(), ENTRIES)
    handles = figure.legends[0].legend_handles
    looks = {(one.get_color(), one.get_marker(), str(one.get_markerfacecolor())) for one in handles}
    assert len(looks) == len(handles)


def test_the_same_means_give_the_same_bytes(tmp_path):
    for name, frame in (("a", means()), ("b", means().reverse())):
        paths = tmp_path / f"{name}.pdf", tmp_path / f"{name}.svg"
        figure_style.save(draw(frame, ENTRIES), *paths, "Title", "Description.")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
