"""The findings on answers that are not kept say no more than their intervals do."""

import polars as pl

from trace_workflow.analyses.cascades import CASCADES
from trace_workflow.tables.answer_findings import find_cascade_gains

MODELS = {"a": "Small", "b": "Large"}


def pair(large="b", right=0.8, **area):
    facts = {"small_right": 0.4, "large_right": right, "small_alone_right": 0.1}
    facts |= {"small_cost": 1.0, "large_cost": 4.0}
    rows = [{"metric": name, "value": value} for name, value in facts.items()]
    ends = {"over_random": 0.05, "over_random_low": 0.01, "over_random_high": 0.09} | area
    rows += [
        {"router": "trace_plus", "metric": "area", "value": 0.7} | ends,
        {"router": "trace_plus", "metric": "gain_kept_at_20", "value": 0.33},
    ]
    told = {"small": "a", "large": large, "level": 0.95}
    return pl.DataFrame([dict.fromkeys(CASCADES) | told | row for row in rows], schema=CASCADES)


def test_the_pair_with_the_largest_gain_is_told_of_with_its_interval():
    both = pl.concat([pair("c", right=0.5), pair()])
    (found,) = find_cascade_gains(both, MODELS | {"c": "Middle"})
    assert found.sentence == (
        "Sending the answers that TRACE+ doubts from Small to Large gets more of them right than "
        "sending them at random (mean accuracy +0.050, 95% interval +0.010 to +0.090)."
    )
    (unclear,) = find_cascade_gains(pair(over_random_low=-0.01), MODELS)
    assert "measurably neither more nor fewer of them right" in unclear.sentence
    assert find_cascade_gains(pair(right=0.405), MODELS) == [], "a pair that the table leaves out"


def test_what_is_not_there_is_not_told_of():
    assert find_cascade_gains(pair().clear(), MODELS) == []
