"""Which analyses, tables and figures a run makes of cascades; nothing is computed here.

A *cascade* of a small and a large model asks the large one where the small one's answer has a low
probability of being right. The module plan calls `results` for each run.
"""

from collections.abc import Iterator, Mapping, Sequence

from trace_workflow.config.run import Run
from trace_workflow.plan.entries import (
    Analysis,
    Figure,
    PerPair,
    PlannedTable,
    Result,
    analysed,
    pair_files,
)
from tracecal.estimators.estimator import PICKED, entries

ModelPairs = Sequence[tuple[str, str]]  # (small, large)


def results(run: Run) -> Iterator[Result | PlannedTable]:
    """The cascades of each pair of a small and a large model; a run with one model has none."""
    config, compared, pairs = run.config, run.selection.compared, run.config.cascades()
    if not pairs:
        return
    prices = {model.slug: model.price.model_dump() for model in config.models if model.price}
    for pair in pairs:
        routers = run.selection.computed(pair[0]).with_ids(compared.ids)
        settings = {
            "estimators": [*routers.ids, *([PICKED] if compared.baselines else [])],
            "baselines": routers.baselines.ids,
            "bootstrap": run.bootstrap,
            "prices": {model: prices[model] for model in pair if model in prices},
        }
        files = pair_files("labels traces predictions splits questions", "all")
        # If a price is missing, cost is counted in parameters, which are read from the model's
        # folder. Models whose answers were imported have none.
        models = [model for model in pair if not config.answered(model)]
        if models and not {*pair} <= {*prices}:
            files["models"] = PerPair("<results>/models/{model}", "all", models)
        yield _pair_analysis("cascades", pair, settings, files)
    yield _joined_analysis("cascades", pairs)
    baseline = {"named_baseline": config.study.named_baseline}
    yield PlannedTable("cascades", ["cascades"], ["all"], compared, baseline)
    inputs = {"results": analysed("cascades")}
    settings = {"entries": entries(compared), "models": run.model_labels}
    yield Figure("cost_and_accuracy", inputs, settings | baseline)
    yield from _guarantees(run, pairs)


def _guarantees(run: Run, pairs: ModelPairs) -> Iterator[Result | PlannedTable]:
    """The guarantees of each cascade whose small model has TRACE+."""
    config = run.config
    pairs = [pair for pair in pairs if "trace_plus" in run.selection.computed(pair[0]).ids]
    if not pairs:
        return
    settings = {
        "inputs": run.selection.chosen.inputs["trace_plus"],
        "method": config.calibration.method,
        "guarantees": config.risk_control.cascades.listed(),
        "confidence": config.risk_control.confidence,
        "largest_group": config.risk_control.largest_group,
    }
    files = pair_files("labels scores features splits questions", "whole")
    for pair in pairs:
        yield _pair_analysis("cascade_promises", pair, settings, files)
    yield _joined_analysis("cascade_promises", pairs)
    yield PlannedTable("cascade_promises", ["cascade_promises"], ["all"])


def _pair_analysis(
    name: str, pair: tuple[str, str], settings: Mapping[str, object], files: Mapping[str, PerPair]
) -> Analysis:
    """The analysis of one pair: a model added to a run adds only the analyses with that model."""
    small, large = pair
    return Analysis(
        f"{name}/{small}/{large}",
        files,
        {**settings, "small": small, "large": large},
        pairs=files["labels"].study,
        sharing=pair,
        made_by=name,
    )


def _joined_analysis(name: str, pairs: ModelPairs) -> Analysis:
    """The analyses of all pairs as one frame."""
    parts = [analysed(f"{name}/{small}/{large}") for small, large in pairs]
    return Analysis(name, {"parts": parts}, made_by="cascades", function="join_pairs", quick=True)
