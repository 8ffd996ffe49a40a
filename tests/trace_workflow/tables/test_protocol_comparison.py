"""The protocol comparison says of each method what the paper's table says."""

from dataclasses import replace

from support import synthetic
from trace_workflow.config import paper
from trace_workflow.contents.comparison import protocol_rows
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.protocol import ASSUMPTIONS, protocol_comparison
from tracecal.estimators.registry import ESTIMATORS


def test_marks_are_the_papers_where_it_has_them():
    rows = {row["method"]: row for row in protocol_rows(ESTIMATORS)}
    printed = paper.read()["protocol_comparison"]
    assert len(printed) == 40
    for one in printed:
        method = one.row.removeprefix("method=")
        assert rows[method][one.column] == one.value, (method, one.column)


def test_families_share_a_row_variants_have_none_and_trace_stands_last():
    rows = protocol_rows(ESTIMATORS)
    methods = [row["method"] for row in rows]
    assert len(methods) == len(set(methods))
    assert not {"seq_logp", "learned_dml", "beam_ratio"} & set(methods)
    made = protocol_comparison(
        replace(synthetic.settings([], {}, {}, {"methods": rows}), frames={})
    )
    assert made.frame["method"].to_list()[-len(made.groups[-1].rows) :] == ["trace", "trace_plus"]
    assert render_csv(made).startswith("method,label," + ",".join(ASSUMPTIONS))
