"""The table of TRACE+'s features names each of them, as the code computes it."""

import math
from dataclasses import replace

import polars as pl
import pytest

from support import synthetic
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.protocol import DEFINITIONS, trace_plus_features
from tracecal.estimators.feature_sets import LIKELIHOOD, TRACE_PLUS_FEATURES
from tracecal.estimators.features import answer_features
from tracecal.estimators.registry import ESTIMATORS

TABLE = trace_plus_features(
    replace(
        synthetic.settings([], {}, {}, {"features": TRACE_PLUS_FEATURES, "excluded": LIKELIHOOD}),
        frames={},
    )
)
H, S = [4.0, 2.0, 1.0, 3.0], [0.5, 0.1, 3.0, 0.2]


def decayed(values, decay):
    weights = [math.exp(-(t - 1) / decay) for t in range(1, len(values) + 1)]
    mean = sum(w * x for w, x in zip(weights, values, strict=True)) / sum(weights)
    return math.exp(-mean)


# What each definition says in words, worked out for one answer of four tokens.
SAID = {
    "exp(−mean of H over the first 3 tokens)": math.exp(-7 / 3),
    "exp(−mean of H over all tokens)": math.exp(-2.5),
    "ln T": math.log(4),
    "least-squares slope of H on t; 0 where T = 1": (-1.5 * 4 - 0.5 * 2 + 0.5 * 1 + 1.5 * 3) / 5,
    "exp(−weighted mean of H), weight exp(−(t − 1)/2) at token t": decayed(H, 2),
    "exp(−weighted mean of H), weight exp(−(t − 1)/4) at token t": decayed(H, 4),
    "exp(−weighted mean of s), weight exp(−(t − 1)/2) at token t": decayed(S, 2),
    "exp(−weighted mean of s), weight exp(−(t − 1)/4) at token t": decayed(S, 4),
    "smallest p": math.exp(-3.0),
    "exp(−mean of s)": math.exp(-3.8 / 4),
    "share of tokens with p < 0.1": 0.25,
}


@pytest.mark.parametrize("feature", DEFINITIONS)
def test_a_definition_says_what_the_code_computes(feature):
    trace = pl.DataFrame({"example_id": ["a"], "surprisal": [S], "entropy": [H]})
    formula = DEFINITIONS[feature].formula.replace("λ", feature[-1])
    assert answer_features(trace)[feature].item() == pytest.approx(SAID[formula])


def test_it_holds_trace_pluss_features_and_under_a_rule_those_it_excludes():
    ids = [" ".join(part["features"]).split() for part in TABLE.frame.partition_by("used_by")]
    assert [len(group.rows) for group in TABLE.groups] == [6, 3], "as many as in the paper"
    assert ids == [list(TRACE_PLUS_FEATURES), list(LIKELIHOOD)]
    assert set(DEFINITIONS) == {*TRACE_PLUS_FEATURES, *LIKELIHOOD}


def test_who_uses_a_feature_is_what_the_registry_says():
    features = {one.id: one.features for one in ESTIMATORS}
    for row in TABLE.frame.iter_rows():
        for estimator in row[-1].split():
            assert {*row[0].split()} <= {*features[estimator]}
    assert "trace_plus_with_likelihood" in render_csv(TABLE)


def test_latex_prints_no_character_as_it_stands_but_ascii():
    assert render_latex(TABLE).isascii()
