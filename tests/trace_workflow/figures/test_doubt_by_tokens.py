"""Confidence by tokens seen: what the panels draw."""

import polars as pl
import pytest

from trace_workflow.analyses.early_doubt import ALL, TOKENS
from trace_workflow.figures.doubt_by_tokens import draw
from tracecal.estimators.registry import ESTIMATORS

ENTRIES = [one for one in ESTIMATORS if one.id in {"seq_logp", "trace", "trace_plus", "min_prob"}]
LAST = str(TOKENS[-1])


def early_doubt():
    prefixes = [*map(str, TOKENS), "10%", ALL]
    rows = [
        (task, entry.id, prefix, metric, 0.6, 0.5, 0.7, 0.1, low, 0.2)
        for task in (None, "cities")
        for entry in ENTRIES
        for prefix in prefixes
        for metric in ("auroc", "saved")
        for low in [-0.05 if prefix == LAST else 0.02]
    ]
    names = "task estimator prefix metric value low high lost lost_low lost_high".split()
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(level=0.95)


def test_the_loss_of_each_prefix_has_an_interval_and_is_hollow_where_that_contains_zero():
    _, lost = draw(early_doubt(), ENTRIES).axes
    assert [label.get_text() for label in lost.get_xticklabels()] == [*map(str, TOKENS), ALL]
    points = [line for line in lost.lines if line.get_marker() == "*"]
    assert [point.get_xdata()[0] for point in points] == [*range(len(TOKENS))]
    hollow = [point.get_markerfacecolor() == "white" for point in points]
    assert hollow == [False] * (len(TOKENS) - 1) + [True]
    spans = [part.get_segments()[0][:, 1].tolist() for part in lost.collections]
    assert spans[0] == pytest.approx([0.02, 0.2]) and spans[-1] == pytest.approx([-0.05, 0.2])


def test_only_named_estimators_are_drawn():
    figure = draw(early_doubt(), ENTRIES)
    names = [text.get_text().strip() for text in figure.legends[0].get_texts()]
    assert {*names} == {one.label for one in ENTRIES if one.id != "min_prob"}
    assert len(figure.axes[0].lines) == len(names)
