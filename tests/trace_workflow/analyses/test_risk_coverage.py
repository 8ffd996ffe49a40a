"""Thresholds of all pairs in one table, whatever fits rank them."""

from trace_workflow.analyses.risk_coverage import risk_coverage

THRESHOLD = {"error_rate": 0.2, "threshold": None, "allowed": None, "enough": 90, "reason": "few"}


def test_pairs_that_different_kinds_of_fits_rank_stand_in_one_table():
    fits = {"kind": "logistic", "weights": [1.0]}, {"kind": "pooled", "weights": [[1.0]]}
    controls = [
        {"confidence": 0.9, "features": ["a"], "fit": fit, "thresholds": [THRESHOLD]}
        for fit in fits
    ]
    table = risk_coverage(controls, [("m", "u"), ("m", "t")])
    assert table["task"].to_list() == ["t", "u"]
    assert table.columns == ["model", "task", "confidence", *THRESHOLD]
    assert table["enough"].to_list() == [90, 90]
