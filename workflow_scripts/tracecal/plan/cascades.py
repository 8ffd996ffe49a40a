"""What to do with the answers that are not kept: how early one can tell, and cascades of models."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tracecal.calibrate.picked import PICKED
from tracecal.config.selection import chosen_for
from tracecal.estimate.of_traces import KNOWN
from tracecal.plan.main_study import FILES
from tracecal.plan.results import Analysis, Figure, PerPair, Result, Table, analysed
from tracecal.plan.run import Run
from tracecal.registry.estimators import entries


def results(run: Run) -> Iterator[Result | Table]:
    """The analyses, tables and figures of answers that are not kept."""
    yield from _early_doubt(run)
    yield from _cascades(run)


def _early_doubt(run: Run) -> Iterator[Result | Table]:
    """The compared estimators that have a meaning on a part of an answer."""
    # Estimators that look at a trace alone have a meaning on its first tokens.
    shown = [e for e in run.main_compared if {*e.inputs} <= {*KNOWN}]
    if not shown:
        return
    settings = {
        "estimators": {e.id: e.inputs for e in shown},
        "method": run.config.calibration.method,
        "bootstrap": run.bootstrap,
    }
    files = {kind: FILES[kind] for kind in ("traces", "labels", "splits", "questions")}
    yield Analysis("early_doubt", files, settings, pairs="main")
    yield Table("early_doubt", ["early_doubt"], estimators=shown)
    found = {"found": analysed("early_doubt")}
    yield Figure("doubt_by_tokens", found, {"entries": entries(shown)})


def _cascades(run: Run) -> Iterator[Result | Table]:
    """The pairs of models that share tasks; a run with one model has none."""
    config = run.config
    named = config.study.cascades
    pairs = config.study.cascading() if named is None else [(one.small, one.large) for one in named]
    if not pairs:
        return
    in_pairs = sorted({model for pair in pairs for model in pair})
    every = {model: chosen_for(model, run.compared, config) for model in in_pairs}
    baselines = [e.id for e in run.compared if e.role == "baseline"]
    prices = {one.slug: one.price for one in config.models if one.price and one.slug in in_pairs}
    settings = {
        "estimators": {
            model: [*(e.id for e in known), *([PICKED] if baselines else [])]
            for model, known in every.items()
        },
        "baselines": baselines,
        "bootstrap": run.bootstrap,
        "cascades": [list(pair) for pair in pairs],
        "chosen": named is not None,
        "prices": {model: price.model_dump() for model, price in sorted(prices.items())},
    }
    kinds = ("labels", "traces", "predictions", "splits", "questions")
    files = {kind: replace(FILES[kind], study="all") for kind in kinds}
    # Where prices are not known of both, parameters count; answers from files come without.
    unpriced = {model for pair in pairs if not {*pair} <= {*prices} for model in pair}
    if weighed := sorted(model for model in unpriced if not config.answered(model)):
        files["models"] = PerPair("<results>/models/{model}", "all", weighed)
    yield Analysis("cascades", files, settings, pairs="all")
    shown = {"named": config.study.named_baseline}
    yield Table("cascades", ["cascades"], ["all"], run.compared, shown)
    drawn = {"entries": entries(run.compared), "models": run.model_labels} | shown
    yield Figure("cost_and_accuracy", {"found": analysed("cascades")}, drawn)
    yield from _promises(run, pairs)


def _promises(run: Run, pairs: Sequence[tuple[str, str]]) -> Iterator[Result | Table]:
    """The thresholds of cascades, of the pairs whose small model has TRACE+."""
    config = run.config
    plus = {e.id: e for e in run.chosen}.get("trace_plus")
    kept = [
        list(pair) for pair in pairs if plus and plus in chosen_for(pair[0], run.chosen, config)
    ]
    if not kept:
        return
    settings = {
        "inputs": plus.inputs,
        "method": config.calibration.method,
        "cascades": kept,
        "chosen": run.config.study.cascades is not None,
        "promises": config.risk_control.cascades.listed(),
        "confidence": config.risk_control.confidence,
    }
    kinds = ("labels", "scores", "features", "splits", "questions")
    files = {kind: replace(FILES[kind], study="whole") for kind in kinds}
    yield Analysis("cascade_promises", files, settings, pairs="whole")
    yield Table("cascade_promises", ["cascade_promises"], ["all"])
