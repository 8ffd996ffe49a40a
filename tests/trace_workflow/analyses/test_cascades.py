"""Cascades of a made-up pair of models with known truth: curves, areas and costs in closed form."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.arrow_files import write_arrow
from support.synthetic import ENTRIES
from trace_workflow.analyses.cascades import CASCADES, analysis, join_pairs
from trace_workflow.analyses.study_files import StudyFiles
from trace_workflow.tables import cascades as table
from trace_workflow.tables import columns
from trace_workflow.tables.study_results import StudyResults
from tracecal.calibration import cascade
from tracecal.calibration.cascade import BEST, cascade_table
from tracecal.calibration.costs import BY_PARAMETERS, BY_PRICE, active_parameters, answer_costs
from tracecal.calibration.routing import (
    ORACLE,
    RANDOM,
    SHARES,
    add_reference_routers,
    routing_curve,
)
from tracecal.calibration.splits import make_splits
from tracecal.estimators.estimator import PICKED
from tracecal.io.input_files import read_yaml
from tracecal.io.traces import provenance
from tracecal.pages import cost_and_accuracy as figure

N = 200
# By probability of the small model: it is right from 0.6 on, the large one from 0.1 to 0.9, so that
# d is 0, then 1 from 0.1, 0 from 0.6 and -1 from 0.9 on.
PROBABILITY = (np.arange(N) + 0.5) / N
SMALL = PROBABILITY > 0.6
LARGE = (PROBABILITY > 0.1) & (PROBABILITY < 0.9)
IDS = [f"e{place:03}" for place in range(N)]
BOOTSTRAP = [1, 60, 0.9]


def known_gain(share):
    return np.interp(share, [0, 0.1, 0.6, 0.9, 1], [0, 0, 0.5, 0.5, 0.4])


def curve(probability, weights=None, small=SMALL, large=LARGE, cost=None):
    small, large = np.asarray(small, dtype=float), np.asarray(large, dtype=float)
    cost = np.ones(len(small)) if cost is None else cost
    weights = np.ones((1, len(small))) if weights is None else weights
    return routing_curve(np.asarray(probability, dtype=float), small, large, cost, weights)


def limits():
    return add_reference_routers({}, LARGE.astype(float) - SMALL, 1)


def test_a_curve_its_area_and_its_cost_are_those_of_the_known_truth():
    found = curve(PROBABILITY, cost=2 + PROBABILITY)
    assert np.allclose(found.accuracy[0], 0.4 + known_gain(SHARES))
    assert found.area[0] == pytest.approx(0.4 + 0.125 + 0.15 + 0.045)
    # The large model's answers to the lowest share x cost 2 + x / 2 on average.
    assert np.allclose(found.cost, SHARES * (2 + SHARES / 2))


def test_random_is_a_line_and_the_oracle_takes_what_helps_first():
    random, oracle = (curve(limits()[name][0]) for name in (RANDOM, ORACLE))
    assert np.allclose(random.accuracy[0], 0.4 + 0.4 * SHARES)
    assert random.area[0] == pytest.approx(0.6)
    better, worse = 0.5, 0.1
    best = 0.4 + np.minimum(SHARES, better) - np.maximum(SHARES - (1 - worse), 0)
    assert np.allclose(oracle.accuracy[0], best)
    assert oracle.area[0] == pytest.approx(0.4 + better - better**2 / 2 - worse**2 / 2)


def test_answers_without_a_probability_are_escalated_first():
    unknown = np.where(PROBABILITY < 0.3, np.nan, PROBABILITY)
    found = curve(unknown)
    # In any order among themselves: d is 1 for two thirds of them.
    assert found.accuracy[0, 15] == pytest.approx(0.4 + 0.15 * 2 / 3)
    assert np.allclose(found.accuracy[0, 30:], 0.4 + known_gain(SHARES[30:]))


@given(st.data())
def test_curves_agree_with_escalating_one_by_one(data):
    n = data.draw(st.integers(1, 8))
    lists = [data.draw(st.lists(st.booleans(), min_size=n, max_size=n)) for _ in range(2)]
    small, large = (np.array(one, dtype=float) for one in lists)
    ties = st.sampled_from([0.0, 0.2, 0.5, 1.0])
    probability = np.array(data.draw(st.lists(ties, min_size=n, max_size=n)))
    found = curve(probability, small=small, large=large)
    spread = probability + np.arange(n) * 1e-6
    orders = [np.argsort(spread), np.argsort(probability - np.arange(n) * 1e-6)]
    singles = [
        [np.where(np.isin(np.arange(n), order[:k]), large, small).mean() for k in range(n + 1)]
        for order in orders
    ]
    # At the ends of ties all orders agree, and the curve with them.
    for k in np.flatnonzero(np.diff(np.append(np.sort(probability), 2.0))) + 1:
        at = np.interp(k / n, SHARES, found.accuracy[0])
        if np.isclose(SHARES, k / n).any():
            assert at == pytest.approx(singles[0][k]) == pytest.approx(singles[1][k])
    # Escalating in reverse gives back what this order takes.
    reverse = curve(-probability, small=small, large=large)
    assert found.area[0] + reverse.area[0] == pytest.approx(small.mean() + large.mean())
    oracle = curve(small - large, small=small, large=large)
    assert (oracle.accuracy[0] >= found.accuracy[0] - 1e-9).all()


def test_weights_count_as_repeated_answers():
    draw = np.random.default_rng(3)
    weights = draw.poisson(1.0, (4, N)).astype(float)
    drawn = curve(PROBABILITY, weights)
    for row, counts in enumerate(weights.astype(int)):
        index = np.repeat(np.arange(N), counts)
        alone = curve(PROBABILITY[index], small=SMALL[index], large=LARGE[index])
        assert np.allclose(drawn.accuracy[row], alone.accuracy[0])
        assert drawn.area[row] == pytest.approx(alone.area[0])


def answers():
    truth = {"small": SMALL, "large": LARGE, "small_cost": 1.0, "large_cost": 4.0}
    ids = {"example_id": IDS, "group_id": IDS}
    return pl.DataFrame(ids).with_columns(
        **{k: v if np.ndim(v) == 0 else pl.Series(v) for k, v in truth.items()}
    )


def everywhere(probability, estimator, splits=2):
    """Predictions, and splits that evaluate every answer."""
    return pl.concat(
        pl.DataFrame({"example_id": IDS, "probability": probability}).with_columns(
            split=pl.lit(split), estimator=pl.lit(estimator), part=pl.lit("evaluation")
        )
        for split in range(splits)
    )


@pytest.fixture(scope="module")
def known():
    """Routing by the known probability (TRACE+), and by its reverse (a baseline)."""
    told = pl.concat(
        [everywhere(PROBABILITY, "trace_plus"), everywhere(1 - PROBABILITY, "seq_logp")]
    )
    splits = everywhere(PROBABILITY, "any").drop("estimator", "probability")
    by_task = {
        task: cascade.task_curves(
            answers(), told, splits, task, ["trace_plus", "seq_logp"], BOOTSTRAP
        )
        for task in ("t", "u")
    }
    return cascade_table(by_task, ["seq_logp"], 0.9)


def value(frame, column="value", task=None, **where):
    own = frame.filter(pl.col("task").eq_missing(pl.lit(task, pl.String)), **where)
    return own[column].item()


def test_measures_are_those_of_the_known_truth(known):
    plus = {"router": "trace_plus"}
    assert value(known, metric="area", **plus) == pytest.approx(0.72)
    kept = [value(known, metric=f"gain_kept_at_{at}", **plus) for at in (10, 20, 30)]
    assert kept == pytest.approx([0, 0.1 / 0.4, 0.2 / 0.4], abs=1e-9)
    assert value(known, metric="needed", **plus) == pytest.approx(0.49)
    assert value(known, metric="needed", router=RANDOM) == pytest.approx(1 - 0.01 / 0.4)
    assert value(known, metric="gain_kept_at_20", router=RANDOM) == pytest.approx(0.2)
    assert value(known, metric="area", router=ORACLE) == pytest.approx(0.77)
    assert value(known, metric="area", router="seq_logp") == pytest.approx(0.4 + 0.8 - 0.72)
    facts = [value(known, metric=name) for name in ("small_right", "large_right")]
    facts += [value(known, metric=f"{name}_alone_right") for name in ("small", "large")]
    assert facts == pytest.approx([0.4, 0.8, 0.1, 0.5])
    costs = known.filter(metric="cost", router="trace_plus", task="t").sort("share")
    assert np.allclose(costs["value"], 1 + 4 * SHARES)


def test_gains_are_paired(known):
    plus = {"router": "trace_plus", "metric": "area"}
    assert value(known, "over_random", **plus) == pytest.approx(0.12)
    assert value(known, "over_random_low", **plus) > 0
    over = {"router": "seq_logp", "metric": "area"}
    assert value(known, "trace_plus_over", **over) == pytest.approx(0.72 - 0.48)
    assert value(known, "trace_plus_over_low", **over) > 0
    for column in ("over_random", "over_random_low", "over_random_high"):
        assert value(known, column, router=RANDOM, metric="area") == 0
    needed = {"router": "trace_plus", "metric": "needed"}
    assert value(known, "over_random", **needed) == pytest.approx(0.975 - 0.49)
    best = {"router": BEST, "metric": "area"}
    assert value(known, **best) == value(known, **over)
    assert value(known, "low", **best) is value(known, "trace_plus_over_low", **best) is None


def test_active_parameters_are_those_that_transformers_counts():
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    shared = {"hidden_size": 32, "num_hidden_layers": 3, "vocab_size": 50, "intermediate_size": 40}
    shared |= {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False}
    for kind, more in (("llama", {}), ("qwen2", {}), ("mixtral", {"num_local_experts": 4})):
        config = AutoConfig.for_model(kind, **shared, **more)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        counted = sum(
            weight.numel() * (2 / 4 if "experts" in name else 1)
            for name, weight in model.named_parameters()
            if weight.ndim > 1 and "embed" not in name
        )
        told = config.to_dict() | ({"num_experts_per_tok": 2} if more else {})
        assert active_parameters(told) == counted, kind
    assert active_parameters({**shared, "model_type": "gpt2"}) is None
    assert active_parameters({"model_type": "llama"}) is None


def test_costs_are_by_price_or_by_parameters():
    prompt, generated = np.array([1000.0, 0]), np.array([500.0, 10])
    price = {"prompt": 2.0, "generated": 8.0}
    # 1000 x 2 / 10^6 + 500 x 8 / 10^6 for a question; a thousand of them cost 6.
    assert answer_costs(prompt, generated, price, 7).tolist() == pytest.approx([6.0, 0.08])
    assert answer_costs(prompt, generated, None, 2 * 10**9).tolist() == [3000, 20]
    assert answer_costs(prompt, generated, None, None) is None


LLAMA = {"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 10}
LLAMA |= {"num_attention_heads": 2, "intermediate_size": 16}


def files(root, models=("a", "b"), tasks=("t",)):
    """A run's files: model b is more often right, and a's probability knows where a is right."""
    paths = {kind: [] for kind in ("labels", "traces", "predictions", "splits", "questions")}
    pairs = [[model, task] for model in models for task in tasks]
    for model, task in pairs:
        groups = pl.DataFrame({"example_id": IDS, "group_id": IDS})
        splits = make_splits(groups, task, 1, 3, 0.35)
        predictions = splits.filter(part="evaluation").with_columns(
            estimator=pl.lit("trace_plus"),
            probability=pl.col("example_id").str.slice(1).cast(pl.Float64) / N,
        )
        frames = {
            "labels": groups.with_columns(correct=pl.Series(SMALL if model == "a" else LARGE)),
            "predictions": predictions,
            "splits": splits,
            "questions": groups.with_columns(role=pl.lit("evaluation")),
        }
        for kind, frame in frames.items():
            paths[kind].append(root / f"{kind}-{model}-{task}.parquet")
            frame.write_parquet(paths[kind][-1])
        tokens = pl.DataFrame({"example_id": IDS}).with_columns(
            prompt_token_ids=pl.lit([1, 2, 3], pl.List(pl.Int32)),
            token_ids=pl.lit([4], pl.List(pl.Int32)),
        )
        paths["traces"].append(root / f"{model}-{task}.arrow")
        metadata = provenance(model, "r", "float32", "greedy", 1)
        write_arrow(tokens.to_dicts(), tokens.to_arrow().schema, metadata, paths["traces"][-1])
        (root / model).mkdir(exist_ok=True)
        (root / model / "config.json").write_text(json.dumps(LLAMA))
    return paths | {"pairs": pairs}


def analysed(root, small="a", large="b", prices=None, **changes):
    paths = files(root) | changes
    pairs = paths.pop("pairs")
    paths["models"] = [root / model for model, _ in pairs]
    settings = {
        "small": small,
        "large": large,
        "estimators": ["trace_plus"],
        "baselines": [],
        "bootstrap": BOOTSTRAP,
        "prices": prices or {},
    }
    return analysis(StudyFiles(paths, pairs), **settings)


def test_a_cascade_is_of_the_two_models_that_are_named(tmp_path):
    found = analysed(tmp_path)
    assert found.schema == CASCADES
    assert found.select("small", "large").unique().rows() == [("a", "b")]
    assert set(found["unit"]) == {BY_PARAMETERS}
    each = active_parameters(LLAMA) / 1e9 * 4
    assert value(found, metric="large_cost") == pytest.approx(each)
    # Means over the evaluated parts of the known truth.
    assert value(found, metric="area", router="trace_plus") == pytest.approx(0.72, abs=0.05)
    # Whichever is right more often.
    back = analysed(tmp_path, "b", "a")
    assert back.select("small", "large").unique().rows() == [("b", "a")]
    assert value(back, metric="large_right") == value(found, metric="small_right")


def test_the_cascades_of_all_pairs_are_joined_in_their_order(tmp_path):
    parts = [analysed(tmp_path, *pair) for pair in (("b", "a"), ("a", "b"))]
    parts.append(parts[0].clear())
    paths = [tmp_path / f"{place}.parquet" for place in range(3)]
    for path, frame in zip(paths, parts, strict=True):
        frame.write_parquet(path)
    made = join_pairs(StudyFiles({"parts": paths}))
    assert made.equals(pl.concat(parts)) and made.schema == CASCADES


def test_prices_count_where_both_models_have_one(tmp_path):
    price = {"prompt": 1.0, "generated": 2.0}
    found = analysed(tmp_path, prices={"a": price, "b": {"prompt": 10.0, "generated": 20.0}})
    assert set(found["unit"]) == {BY_PRICE}
    assert value(found, metric="small_cost") == pytest.approx(5 / 1000)
    assert value(found, metric="large_cost") == pytest.approx(50 / 1000)
    assert set(analysed(tmp_path, prices={"a": price})["unit"]) == {BY_PARAMETERS}


def test_models_without_a_common_task_have_no_cascade(tmp_path):
    given = files(tmp_path)
    found = analysed(tmp_path, pairs=[["a", "t"], ["b", "other"]])
    assert found.is_empty() and found.schema == CASCADES
    made = table.table(replace(settings(), frames={"cascades": found}))
    assert made.footnotes == (cascade.NOTHING,)
    drawn = figure.draw(found, [], {}, "seq_logp")
    assert cascade.NOTHING in {text.get_text() for text in drawn.texts}
    assert given["pairs"] == [["a", "t"], ["b", "t"]]


def settings():
    shown = [entry for entry in ENTRIES if entry.id in ("seq_logp", "trace_plus")]
    studies = {"all": {"models": ["a", "b"], "tasks": ["t"]}}
    return StudyResults(
        {}, shown, {"a": "A", "b": "B"}, {"t": "T"}, studies, {"named_baseline": "seq_logp"}
    )


def test_it_is_shown(known, tmp_path):
    named = {"small": pl.lit("a"), "large": pl.lit("b"), "unit": pl.lit(BY_PRICE)}
    found = known.with_columns(**named).select(*CASCADES)
    made = table.table(replace(settings(), frames={"cascades": found}))
    routers = ["seq_logp", BEST, "trace_plus", RANDOM, ORACLE]
    assert made.frame["router"].to_list() == routers
    (title,) = made.titles.values()
    assert title == "A (40.0 % right) to B (80.0 %), wrong on 10.0 % where the first is right"
    plus = made.frame.row(by_predicate=pl.col("router") == "trace_plus", named=True)
    assert plus["needed_cost"] == pytest.approx((1 + 4 * 0.49) / 4)
    told = read_yaml(columns.COLUMNS)
    for column in made.frame.columns:
        unit, words = columns.describe_column(column, {}, told)
        assert unit and words and "{" not in words
    assert "`area_over_random`" in columns.describe_column("area_over_random_low", {}, told)[1]
    figure.draw(found, settings().estimators, settings().models, "seq_logp").savefig(
        tmp_path / "shown.svg"
    )
    text = (tmp_path / "shown.svg").read_text()
    assert "Oracle" in text and "TRACE+" in text and "over random routing (" in text
    assert PICKED in table.LABELS


def flat(large_right, small_right=SMALL, baselines=("seq_logp",)):
    """The cascade of a made-up pair whose large model is right where `large_right` says."""
    frame = answers().with_columns(small=pl.Series(small_right), large=pl.Series(large_right))
    told = pl.concat(everywhere(PROBABILITY, name) for name in ("trace_plus", "seq_logp"))
    splits = everywhere(PROBABILITY, "any").drop("estimator", "probability")
    routed = cascade.task_curves(frame, told, splits, "t", ["trace_plus", "seq_logp"], BOOTSTRAP)
    return cascade_table({"t": routed}, baselines, 0.9)


def named(found, small, large, **costs):
    """`found` as the analysis of two models, at other mean costs where they are given."""
    for name, cost in costs.items():
        metric = pl.col("metric") == name
        found = found.with_columns(value=pl.when(metric).then(cost).otherwise("value"))
    own = {"small": pl.lit(small), "large": pl.lit(large), "unit": pl.lit(BY_PRICE)}
    return found.with_columns(**own).select(*CASCADES)


def test_a_share_of_a_gain_below_five_points_is_not_told():
    """A gain of one answer in 200 made 205 to 1,602 % of shares."""
    for points, kept in ((4.5, False), (5.0, True)):
        right = SMALL | (np.arange(N) < points / 100 * N)
        found = flat(right)
        values = [
            value(found, metric=f"gain_kept_at_{at}", router=router)
            for at in (10, 20, 30)
            for router in ("trace_plus", "seq_logp", BEST, RANDOM, ORACLE)
        ]
        assert all((one is not None) == kept for one in values), points
        assert value(found, metric="area", router=BEST) is not None
    made = table.table(
        replace(settings(), frames={"cascades": named(flat(SMALL | (np.arange(N) < 9)), "a", "b")})
    )
    assert made.frame["gain_kept_at_20"].null_count() == made.frame.height > 0


def test_pairs_that_are_not_worth_a_cascade_are_left_out_with_a_note(known):
    """A "large" model that costs less made a cost of 49,348 %."""
    models = {name: name.upper() for name in "abcde"}
    shown = StudyResults(
        {}, settings().estimators, models, {"t": "T"}, {}, {"named_baseline": "seq_logp"}
    )
    one_point = flat(SMALL | (np.arange(N) < 2))
    found = pl.concat(
        [
            named(known, "a", "b"),
            named(known, "a", "c", large_cost=0.25),
            named(known, "a", "d", large_cost=1.0),
            named(one_point, "a", "e"),
            named(flat(SMALL & (np.arange(N) < N - 10)), "b", "e"),
        ]
    )
    made = table.table(replace(shown, frames={"cascades": found}))
    assert set(zip(made.frame["small"], made.frame["large"], strict=True)) == {("a", "b")}
    assert made.notes[-1] == (
        "Left out, as the large model gains 1 point of accuracy or less, or costs no more: "
        "A to C (25% of the cost), A to D (100% of the cost), A to E (+1.0 points), "
        "B to E (-5.0 points)."
    )
    apart = found.filter(large="e")
    empty = table.table(replace(shown, frames={"cascades": apart}))
    assert empty.footnotes == (cascade.NOTHING,) and len(empty.notes) == 1
    drawn = figure.draw(apart, [], models, "seq_logp")
    assert cascade.NOTHING in {text.get_text() for text in drawn.texts}
    assert len(figure.draw(apart, shown.estimators, models, "seq_logp", every=True).axes) >= 2
    # Without costs a pair stays.
    unknown = named(known, "a", "b").with_columns(
        value=pl.when(pl.col("metric").is_in(["small_cost", "large_cost"]))
        .then(None)
        .otherwise("value")
    )
    assert cascade.select_worthwhile(unknown)[1] == []
