"""What the page of a run says of the guarantee that its findings begin with."""

import polars as pl
import pytest

from trace_workflow.analyses.explorer_answers import show_guarantee
from tracecal.io.files import write_parquet

ROW = {"model": "m", "task": "t", "error_rate": 0.2, "confidence": 0.9, "coverage": 0.3}
HEADLINE = {"model": "m", "task": "t", "error_rate": 0.2}
# The answers of another task would change what is kept.
ANSWERS = pl.DataFrame(
    {
        "model": "m",
        "task": [*("t" * 11), *("u" * 11)],
        "held_out.trace_plus": [None, *(place / 10 for place in range(10)), *([0.99] * 11)],
    }
)


@pytest.mark.parametrize("threshold", [0.6, None])
def test_the_slider_of_a_run_keeps_the_share_that_its_guarantee_keeps(tmp_path, threshold):
    path = tmp_path / "risk_coverage.parquet"
    rows = [ROW | {"threshold": threshold}, ROW | {"task": "u", "threshold": 0.1, "coverage": 0.9}]
    write_parquet(pl.DataFrame(rows, schema_overrides={"threshold": pl.Float64}), path)
    decision = show_guarantee([path], HEADLINE, ANSWERS, {"t": "Sums", "u": "Others"})
    if threshold is None:
        assert decision is None
        return
    assert (decision["threshold"], decision["kept"], decision["rate"]) == (0.7, None, 0.2)
    assert decision["about"].startswith("Guaranteed on Sums: keep the surest 30 %, at most 20 %")


def test_a_run_without_guarantees_has_none():
    assert show_guarantee([], HEADLINE, ANSWERS, {}) is None
