"""The protocol comparison says of each method what the paper's table says."""

from tables import synthetic
from tracecal.paper import published
from tracecal.registry.estimators import ESTIMATORS, protocol_rows
from tracecal.tables.protocol_comparison import COLUMNS, table
from tracecal.writers import csv


def test_marks_are_the_papers_where_it_has_them():
    rows = {row["method"]: row for row in protocol_rows(ESTIMATORS)}
    printed = published.read()["protocol_comparison"]
    assert len(printed) == 40
    for one in printed:
        method = one.row.removeprefix("method=")
        assert rows[method][one.column] == one.value, (method, one.column)


def test_families_share_a_row_variants_have_none_and_trace_stands_last():
    rows = protocol_rows(ESTIMATORS)
    methods = [row["method"] for row in rows]
    assert len(methods) == len(set(methods))
    assert not {"seq_logp", "learned_dml", "beam_ratio"} & set(methods)
    made = table({}, synthetic.settings([], {}, {}, {"methods": rows}))
    assert made.frame["method"].to_list()[-len(made.groups[-1].rows) :] == ["trace", "trace_plus"]
    assert csv.render(made).startswith("method,label," + ",".join(COLUMNS))
