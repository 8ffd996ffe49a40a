"""The comparison of estimators over the tasks and models of each study: tables and figures."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from trace_workflow.config.run import Run
from trace_workflow.contents.entries import Analysis, Figure, PerPair, PlannedTable, analysed
from trace_workflow.tables.estimator_rows import ESTIMATOR_ROWS, estimators_of
from tracecal.estimators.estimator import Estimator, entries
from tracecal.estimators.feature_sets import LIKELIHOOD, TRACE_PLUS_FEATURES
from tracecal.estimators.registry import IDS

# Settings of a table that are fields of its entry.
FIELDS = {"studies", "made_by", "function", "short_models", "of_subset", "model"}


def comparison_table(
    run: Run,
    name: str,
    *analyses: str,
    estimators: Sequence[Estimator] | None = None,
    **settings: Any,
) -> PlannedTable:
    """The table `name` of `estimators`, by default those that the main study compares.

    Its notes also give the number of correct answers, estimators without a score for some answers,
    and a warning where a calibration part is too small for a fit's weights.
    """
    fields = {key: settings.pop(key) for key in FIELDS & settings.keys()}
    if estimators is None:
        estimators = run.selection.compared_of(fields.get("model", ""))
    more = {
        "weights": max([len(e.inputs) for e in estimators], default=0),
        "calibration_share": run.config.splits.calibration_share,
    }
    if any("beams" in estimator.needs for estimator in estimators):
        more["beams"] = run.config.beams.width
    if fields.get("of_subset"):
        more["subset"] = run.config.study.broader.answers
    analyses = tuple(dict.fromkeys([*analyses, "averages", "accuracy"]))
    return PlannedTable(name, analyses, estimators=estimators, more=more | settings, **fields)


AVERAGES = analysed("averages")
quick = partial(Analysis, quick=True)
# Tables of estimators that a run may compute for a subset of the answers alone, and the baselines
# beside them.
OF_SUBSET = ("broader_uq", "semantic_fusion")
BASELINES_ON_SUBSET = {
    "seq_logp",
    "len_norm_logp",
    "beam_ratio",
    "beam_tail_thinness",
    "beam_entropy",
}
# Rows of the protocol comparison that methods with the same needs share.
SHARED_ROWS = {
    ("traces",): ("likelihood_entropy", "Likelihood / entropy"),
    ("beams",): ("beam", "Beam-based scores"),
}


def results(run: Run) -> Iterator[Analysis | Figure | PlannedTable]:
    """The analyses, tables and figures of the averages."""
    yield from _analyses(run)
    yield from _main_tables(run)
    yield from _tables_of_few_estimators(run)
    yield from _protocol_tables(run)
    yield from _figures(run)
    if run.study["cross"]:
        yield from _cross_study(run)
    yield from _risk_coverage(run)


def _analyses(run: Run) -> Iterator[Analysis]:
    baselines = {"baselines": run.selection.chosen.baselines.ids}
    named_baseline = {"named_baseline": run.config.study.named_baseline}
    resamples = {"resamples": PerPair("<results>/resamples/{model}/{task}.parquet", "all")}
    intervals = baselines | {"studies": run.studies, "level": run.config.bootstrap.level}
    own_scores = {"own_scores": run.selection.custom.ids} if run.selection.custom else {}
    measured = {"measured": "<results>/metrics.parquet"}
    yield quick("averages", measured, {"studies": run.studies})
    if run.selection.on_subset():
        measured = {"measured": "<results>/subset/metrics.parquet"}
        yield quick("subset_averages", measured, {"studies": run.broader}, made_by="averages")
    picked = {"picked": PerPair("<results>/picked/{model}/{task}.parquet", "all")}
    inputs = {"averages": AVERAGES} | resamples | picked
    yield quick("improvements", inputs, intervals | named_baseline | own_scores, pairs="all")
    yield quick("comparisons", resamples, intervals)
    measured, settings = {"measured": analysed("languages")}, {"studies": {}, "by": ["language"]}
    yield quick("language_averages", measured, settings, made_by="averages")


def _main_tables(run: Run) -> Iterator[PlannedTable]:
    baseline = {"named_baseline": run.config.study.named_baseline}
    for model in ("", *run.config.study.main.models[1:]):
        yield comparison_table(run, "main_comparison", "improvements", model=model, **baseline)
    yield comparison_table(run, "languages", "language_averages", "language_accuracy")


def _tables_of_few_estimators(run: Run) -> Iterator[PlannedTable]:
    """Averages of a few estimators; a table needs two to compare."""
    selection, study = run.selection, run.config.study
    models = [model for model in study.main.models[1:] if model in study.broader.models]
    of_models = [(name, model) for model in models for name in OF_SUBSET]
    for name, model in [*((name, "") for name in ESTIMATOR_ROWS), *of_models]:
        on_subset = selection.on_subset(model)
        of_subset = bool(on_subset) and name in OF_SUBSET
        computed = on_subset if of_subset else selection.computed(model or study.main.model)
        estimators = computed.with_ids(estimators_of(name))
        options = {"studies": ["main", "cross"]} if name == "ablation" else {}
        if name == "broader_uq":
            ids = estimators_of(name) | (BASELINES_ON_SUBSET if of_subset else set())
            estimators = [*computed.with_ids(ids), *computed.with_ids(selection.custom.ids)]
            options = {"requires": {e.id: e.requires for e in computed}}
        if len(estimators) > 1:
            yield comparison_table(
                run,
                name,
                estimators=estimators,
                made_by="estimator_averages",
                of_subset=of_subset,
                model=model,
                **options,
                table=name,
            )


def _protocol_tables(run: Run) -> Iterator[PlannedTable]:
    """The needs of estimators, and the features of TRACE+."""
    options = {
        "protocol_comparison": {"methods": protocol_rows(run.selection.chosen)},
        "trace_plus_features": {
            "features": list(TRACE_PLUS_FEATURES),
            "excluded": list(LIKELIHOOD),
        },
    }
    for name, more in options.items():
        yield PlannedTable(name, studies=(), more=more, made_by="protocol", function=name)


def protocol_rows(estimators: Iterable[Estimator]) -> list[dict[str, str]]:
    """The rows of the protocol comparison, by the registry: each method with what it assumes."""
    rows: dict[str, dict[str, str]] = {}
    for estimator in estimators:
        if estimator.role == "variant":
            continue
        method, label = estimator.id, estimator.label
        if estimator.role != "trace" and estimator.id in IDS:
            method, label = SHARED_ROWS.get(estimator.needs, (method, label))
        row = {"method": method, "label": label, "role": estimator.role}
        rows.setdefault(method, row | estimator.protocol)
    return list(rows.values())


def _figures(run: Run) -> Iterator[Figure]:
    compared = _compared_with_labels(run)
    measured = {"means": AVERAGES, "comparisons": analysed("comparisons")}
    yield Figure("performance_overview", measured, compared | {"study": run.study})
    paired = {name: analysed(name) for name in ("improvements", "accuracy")}
    yield Figure("paired_differences", paired, compared)


def _cross_study(run: Run) -> Iterator[PlannedTable | Figure]:
    over_models = {
        "studies": ["cross"],
        "estimators": run.selection.compared,
        "named_baseline": run.config.study.named_baseline,
    }
    yield comparison_table(run, "cross_model", "improvements", **over_models)
    for name, short in (("task_details", True), ("best_estimators", False)):
        yield comparison_table(
            run,
            f"cross_model_{name}",
            "improvements",
            **over_models,
            made_by="cross_model_details",
            function=f"cross_model_{name}",
            short_models=short,
        )
    study = {"study": run.study["cross"]}
    yield Figure("model_landscape", {"means": AVERAGES}, _compared_with_labels(run) | study)


def _risk_coverage(run: Run) -> Iterator[Analysis | PlannedTable]:
    """The guarantees of all pairs' calibrators, by the default fit or else TRACE+."""
    calibrators = PerPair("<results>/calibrators/{model}/{task}.json", "all")
    yield quick("risk_coverage", {"calibrators": calibrators}, pairs="all")
    if not {"mean_of_three", "trace_plus"}.isdisjoint(run.selection.chosen.ids):
        more = {"missing": run.missing_parts} if run.missing_parts else {}
        analyses = ["risk_coverage", "accuracy"]
        yield PlannedTable("risk_coverage", analyses, studies=["all"], more=more)


def _compared_with_labels(run: Run) -> dict[str, object]:
    """The compared estimators, and the labels of models and tasks, for figures."""
    return {
        "entries": entries(run.selection.compared),
        "models": run.model_labels,
        "tasks": run.task_labels,
    }
