"""TRACE under other settings and permuted positions: by hand, against NumPy, and by property."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.analyses import operator_variants
from trace_workflow.analyses.operator_variants import (
    DEFAULT,
    DEFAULTS,
    GRID,
    MIXTURE,
    OPERATORS,
    hyperparameters,
    permutations,
    permuted_scores,
    varied_scores,
)
from tracecal.estimators.families import FAMILIES
from tracecal.estimators.features import answer_features

SIGNALS = {"surprisal": pl.List(pl.Float32), "entropy": pl.List(pl.Float32)}
SETTINGS = [(setting, level) for setting, levels in GRID.items() for level in levels]

nats = st.floats(0, 8, width=32)
pairs = st.lists(st.tuples(nats, nats), min_size=1, max_size=20)
answers = st.lists(pairs, min_size=1, max_size=5)


def frame(rows):
    """Traces of answers given as lists of (surprisal, entropy)."""
    columns = {
        "example_id": [f"e{i:02d}" for i in range(len(rows))],
        "surprisal": [[s for s, _ in row] for row in rows],
        "entropy": [[h for _, h in row] for row in rows],
    }
    return pl.DataFrame(columns, schema={"example_id": pl.String} | SIGNALS)


def at(scores, setting, level=None):
    found = scores.filter(pl.col("setting") == setting, pl.col("level").eq_missing(level))
    return found.sort("example_id")["score"].to_list()


def test_the_grid_by_hand():
    # Two tokens: D weighs them 1 and e^(-1/λ); M is a mean of both; L is 3 / 2^ρ.
    scores = varied_scores(frame([[(1, 4), (2, 2)]]))
    second = math.exp(-1 / 2)
    d, m, length = (4 + second * 2) / (1 + second), 3.0, 3 / 2**0.25
    # α = 0.2 leaves 0.8 for β : γ = 2 : 1; γ = 0.1 leaves 0.9 for α : β = 1 : 1.
    risks = {
        (DEFAULT, None): 0.4 * d + 0.4 * m + 0.2 * length,
        ("alpha", 0.2): 0.2 * d + 1.6 / 3 * m + 0.8 / 3 * length,
        ("beta", 0.6): 0.8 / 3 * d + 0.6 * m + 0.4 / 3 * length,
        ("gamma", 0.1): 0.45 * d + 0.45 * m + 0.1 * length,
        ("exponent", 0): 0.4 * d + 0.4 * m + 0.2 * 3,
        ("exponent", 1): 0.4 * d + 0.4 * m + 0.2 * 1.5,
        ("window", 2): 0.4 * d + 0.4 * m + 0.2 * length,
        ("decay", 1): 0.4 * (4 + 2 / math.e) / (1 + 1 / math.e) + 0.4 * m + 0.2 * length,
    }
    for (setting, level), risk in risks.items():
        assert at(scores, setting, level) == [pytest.approx(math.exp(-risk))], (setting, level)


def test_the_grid_is_the_papers():
    assert GRID == {
        "alpha": (0.2, 0.3, 0.4, 0.5, 0.6),
        "beta": (0.2, 0.3, 0.4, 0.5, 0.6),
        "gamma": (0.1, 0.2, 0.3, 0.4),
        "decay": (1, 2, 4, 8),
        "window": (2, 4, 6, 8),
        "exponent": (0, 0.125, 0.25, 0.5, 0.75, 1),
    }


def numpy_risk(s, h, alpha, beta, gamma, decay, window, exponent):
    weights = np.exp(-np.arange(len(h)) / decay)
    width = min(int(window), len(h))
    peak = np.convolve(h, np.full(width, 1 / width), mode="valid").max()
    return (
        alpha * np.average(h, weights=weights) + beta * peak + gamma * s.sum() / len(s) ** exponent
    )


@given(rows=answers)
def test_the_grid_agrees_with_numpy(rows):
    traces, scores = frame(rows), varied_scores(frame(rows))
    assert scores.height == len(rows) * (1 + len(SETTINGS))
    for setting, level in SETTINGS:
        parameters = dict(DEFAULTS)
        rest = [name for name in MIXTURE if setting in MIXTURE and name != setting]
        for name in rest:
            parameters[name] = (1 - level) * MIXTURE[name] / sum(MIXTURE[one] for one in rest)
        parameters[setting] = level
        signals = zip(traces["surprisal"], traces["entropy"], strict=True)
        expected = [
            math.exp(
                -numpy_risk(s.to_numpy().astype(float), h.to_numpy().astype(float), **parameters)
            )
            for s, h in signals
        ]
        np.testing.assert_allclose(at(scores, setting, level), expected, rtol=1e-9)


@given(rows=answers)
def test_the_default_and_every_parameter_at_its_default_is_trace_itself(rows):
    scores = varied_scores(frame(rows))
    trace = (
        answer_features(frame(rows)).select(FAMILIES["trace"].SCORES["trace"]).to_series().to_list()
    )
    assert at(scores, DEFAULT) == trace
    for setting, level in DEFAULTS.items():
        assert at(scores, setting, level) == trace


@pytest.mark.parametrize("setting", MIXTURE)
@given(level=st.floats(0, 1))
def test_the_other_weights_keep_their_ratio_and_all_sum_to_one(setting, level):
    found = hyperparameters(setting, level)
    assert found[setting] == level
    assert sum(found[name] for name in MIXTURE) == pytest.approx(1)
    one, other = (name for name in MIXTURE if name != setting)
    assert found[one] * MIXTURE[other] == pytest.approx(found[other] * MIXTURE[one])
    assert {name: found[name] for name in DEFAULTS if name not in MIXTURE} == {
        name: DEFAULTS[name] for name in ("decay", "window", "exponent")
    }


@given(row=pairs, data=st.data())
def test_draws_are_scores_of_the_tokens_in_the_drawn_order(row, data):
    seed = data.draw(st.integers(0, 3))
    scores = permuted_scores(frame([row]), "task", seed, draws=3)["score"]
    for drawn, score in zip(permutations(len(row), 3, f"{seed}:task:e00"), scores, strict=True):
        assert sorted(drawn) == list(range(len(row)))
        assert at(varied_scores(frame([[row[i] for i in drawn]])), DEFAULT) == [score]


@given(rows=st.lists(st.tuples(nats, nats, st.integers(1, 20)), min_size=1, max_size=5))
def test_permuting_constant_traces_changes_nothing(rows):
    traces = frame([[(s, h)] * length for s, h, length in rows])
    scores = permuted_scores(traces, "task", 0, draws=4)
    original = at(varied_scores(traces), DEFAULT)
    for draw in range(4):
        assert scores.filter(draw=draw)["score"].to_list() == original


@given(row=pairs)
def test_length_normalised_surprisal_has_no_positions(row):
    # With D and M of a constant entropy the score could vary by L alone.
    traces = frame([[(s, 1.0) for s, _ in row]])
    original = at(varied_scores(traces), DEFAULT)[0]
    assert (
        permuted_scores(traces, "task", 0, draws=5)["score"].to_list()
        == [pytest.approx(original, rel=1e-12)] * 5
    )


def test_answers_without_entropies_have_no_score_and_change_no_other():
    traces = frame([[(1.0, 2.0)], [(0.5, 1.0), (2.0, 0.5)]])
    lacking = traces.with_columns(entropy=pl.when(example_id="e01").then("entropy"))
    for scores in (varied_scores, lambda answers: permuted_scores(answers, "task", 0, draws=3)):
        whole, partly = scores(traces), scores(lacking)
        assert partly.filter(example_id="e01").equals(whole.filter(example_id="e01"))
        assert partly.filter(example_id="e00")["score"].null_count() == whole.height / 2


def test_an_early_spike_is_the_riskiest():
    early = frame([[(0.1, 6)] + [(0.1, 0)] * 7])
    drawn = permuted_scores(early, "task", 0, draws=10)["score"]
    assert drawn.n_unique() > 2
    assert (drawn >= at(varied_scores(early), DEFAULT)[0]).all()


@given(rows=answers, data=st.data())
def test_neither_the_order_of_answers_nor_shards_nor_more_draws_change_a_score(rows, data):
    traces = frame(rows)
    order = data.draw(st.permutations(range(traces.height)))
    cut = data.draw(st.integers(0, traces.height))

    def scored(answers, draws=3):
        return permuted_scores(answers, "task", 1, draws) if answers.height else None

    whole, keys = scored(traces), ("setting", "level", "draw", "example_id")
    shards = [part for part in (scored(traces[:cut]), scored(traces[cut:])) if part is not None]
    assert scored(traces[order]).equals(whole)
    assert pl.concat(shards).sort(keys).equals(whole.sort(keys))
    assert scored(traces, 5).filter(pl.col("draw") < 3).equals(whole)
    assert varied_scores(traces[order]).sort(keys).equals(varied_scores(traces).sort(keys))


def test_how_many_answers_are_held_together_changes_nothing(monkeypatch):
    random = np.random.default_rng(0)
    traces = frame([random.exponential(size=(n, 2)).tolist() for n in (3, 9, 1, 5, 12)])
    whole = permuted_scores(traces, "task", 7, draws=3)
    monkeypatch.setattr(operator_variants, "BATCH_SIZE", 2)
    assert permuted_scores(traces, "task", 7, draws=3).equals(whole)


def test_draws_follow_seed_task_and_example():
    keys = ["0:a:x", "1:a:x", "0:b:x", "0:a:y"]
    drawn = [tuple(permutations(12, 2, key).ravel()) for key in keys]
    assert len(set(drawn)) == len(keys)
    first, second = permutations(12, 2, "0:a:x")
    assert first.tolist() != second.tolist()


def test_every_order_is_equally_likely():
    drawn = permutations(3, 6000, "0:task:x")
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert (abs(counts - 1000) < 5 * math.sqrt(1000)).all()


def test_both_kinds_of_rows_share_their_columns():
    traces = frame([[(1, 2), (3, 4)]])
    assert dict(varied_scores(traces).schema) == OPERATORS
    assert dict(permuted_scores(traces, "task", 0).schema) == OPERATORS
    assert permuted_scores(traces, "task", 0).height == operator_variants.N_DRAWS


def test_no_answer_gives_no_score():
    none = pl.DataFrame(
        schema={"example_id": pl.String}
        | dict.fromkeys(["surprisal", "entropy"], pl.List(pl.Float32))
    )
    assert permuted_scores(none, "task", 0).is_empty()
    assert varied_scores(none).is_empty()
