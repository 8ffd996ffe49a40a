"""What to do with the answers that are not kept: how early one can tell, and cascades of models."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trace_workflow.config.run import Run
from trace_workflow.plan.entries import Analysis, Figure, PerPair, Result, Study, Table, analysed
from trace_workflow.plan.main_study import FILES
from tracecal.estimators.entry import PICKED, entries
from tracecal.estimators.registry import of_trace_alone

Pairs = Sequence[tuple[str, str]]  # (small, large)


def results(run: Run) -> Iterator[Result | Table]:
    """The analyses, tables and figures of answers that are not kept."""
    yield from _early_doubt(run)
    yield from _cascades(run)


def _early_doubt(run: Run) -> Iterator[Result | Table]:
    """The compared estimators that have a meaning on a part of an answer."""
    # Estimators that look at a trace alone have a meaning on its first tokens.
    shown = run.selection.main_compared.where(of_trace_alone)
    if not shown:
        return
    settings = {
        "estimators": shown.inputs,
        "method": run.config.calibration.method,
        "bootstrap": run.bootstrap,
    }
    files = {kind: FILES[kind] for kind in ("traces", "labels", "splits", "questions")}
    yield Analysis("early_doubt", files, settings, pairs="main")
    yield Table("early_doubt", ["early_doubt"], estimators=shown)
    found = {"found": analysed("early_doubt")}
    yield Figure("doubt_by_tokens", found, {"entries": entries(shown)})


def _cascades(run: Run) -> Iterator[Result | Table]:
    """The pairs of a small and a large model; a run with one model has none."""
    config, compared, pairs = run.config, run.selection.compared, run.config.cascades()
    if not pairs:
        return
    prices = {one.slug: one.price.model_dump() for one in config.models if one.price}
    kinds = ("labels", "traces", "predictions", "splits", "questions")
    for two in pairs:
        known = run.selection.computed(two[0]).with_ids(compared.ids)
        settings = {
            "estimators": [*known.ids, *([PICKED] if compared.baselines else [])],
            "baselines": known.baselines.ids,
            "bootstrap": run.bootstrap,
            "prices": {model: prices[model] for model in two if model in prices},
        }
        more = {}
        # Where prices are not known of both, parameters count; answers from files come without.
        weighed = [model for model in two if not config.answered(model)]
        if weighed and not {*two} <= {*prices}:
            more = {"models": PerPair("<results>/models/{model}", "all", weighed)}
        yield _of_two("cascades", two, settings, _files(kinds, "all") | more)
    yield _of_all("cascades", pairs)
    shown = {"named": config.study.named_baseline}
    yield Table("cascades", ["cascades"], ["all"], compared, shown)
    drawn = {"entries": entries(compared), "models": run.model_labels} | shown
    yield Figure("cost_and_accuracy", {"found": analysed("cascades")}, drawn)
    yield from _promises(run, pairs)


def _promises(run: Run, pairs: Pairs) -> Iterator[Result | Table]:
    """The thresholds of cascades, of the pairs whose small model has TRACE+."""
    config = run.config
    kept = [pair for pair in pairs if "trace_plus" in run.selection.computed(pair[0]).ids]
    if not kept:
        return
    settings = {
        "inputs": run.selection.chosen.inputs["trace_plus"],
        "method": config.calibration.method,
        "promises": config.risk_control.cascades.listed(),
        "confidence": config.risk_control.confidence,
        "largest": config.risk_control.largest_group,
    }
    files = _files(("labels", "scores", "features", "splits", "questions"), "whole")
    for two in kept:
        yield _of_two("cascade_promises", two, settings, files)
    yield _of_all("cascade_promises", kept)
    yield Table("cascade_promises", ["cascade_promises"], ["all"])


def _files(kinds: Sequence[str], study: Study) -> dict[str, PerPair]:
    return {kind: replace(FILES[kind], study=study) for kind in kinds}


def _of_two(
    name: str, two: tuple[str, str], settings: Mapping[str, object], files: Mapping[str, PerPair]
) -> Analysis:
    """The analysis `name` of one pair alone, so that another model adds its own to a run."""
    small, large = two
    study = files["labels"].study
    own = {**settings, "small": small, "large": large}
    return Analysis(f"{name}/{small}/{large}", files, own, pairs=study, sharing=two, made_by=name)


def _of_all(name: str, pairs: Pairs) -> Analysis:
    """What `_of_two` made of each pair."""
    parts = [analysed(f"{name}/{small}/{large}") for small, large in pairs]
    return Analysis(name, {"parts": parts}, made_by="joined_cascades", quick=True)
