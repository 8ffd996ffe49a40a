"""The comparison of estimators over a study's tasks and models, with its tables and figures."""

from collections.abc import Iterator

from trace_workflow.config.selection import Run
from trace_workflow.plan.comparison_table import compares
from trace_workflow.plan.entries import Analysis, Figure, PerPair, Result, Table, analysed
from trace_workflow.tables.captions import ROWS, shown
from tracecal.estimators.entry import entries
from tracecal.estimators.feature_sets import LIKELIHOOD, TRACE_PLUS_FEATURES
from tracecal.estimators.protocol import protocol_rows

AVERAGES = analysed("averages")
# The tables that show estimators which a run may compute on a subset of the answers, and the
# baselines that stand there beside them.
OF_SUBSET = ("broader_uq", "semantic_fusion")
BASELINES_ON_SUBSET = {
    "seq_logp",
    "len_norm_logp",
    "beam_ratio",
    "beam_tail_thinness",
    "beam_entropy",
}


def results(run: Run) -> Iterator[Result | Table]:
    """The analyses, tables and figures of the averages."""
    yield from _analyses(run)
    named = {"named": run.config.study.named_baseline}
    selection = run.selection
    fits = {e.id: e.label for e in selection.beyond_paper}
    frames = ["improvements", *(["beyond_paper"] if fits else [])]
    yield compares(run, "main_comparison", *frames, **named, beyond_paper=fits)
    languages = ("improvements", "language_averages", "language_improvements", "language_accuracy")
    yield compares(run, "languages", *languages)
    yield from _of_few_estimators(run)
    yield Table(
        "protocol_comparison", studies=(), more={"methods": protocol_rows(selection.chosen)}
    )
    yield Table(
        "trace_plus_features",
        studies=(),
        more={"features": list(TRACE_PLUS_FEATURES), "excluded": list(LIKELIHOOD)},
    )
    labels = {"models": run.model_labels, "tasks": run.task_labels}
    compared = {"entries": entries(selection.compared)} | labels
    means = {"means": AVERAGES}
    yield Figure("performance_overview", means, compared | {"study": run.study})
    paired = {name: analysed(name) for name in ("improvements", "accuracy")}
    yield Figure("paired_differences", paired, compared)
    if run.study["cross"]:
        over_models = {"studies": ["cross"], "estimators": selection.compared} | named
        yield compares(run, "cross_model", "improvements", **over_models)
        yield compares(
            run, "cross_model_task_details", "improvements", **over_models, short_models=True
        )
        yield compares(run, "cross_model_best_estimators", "improvements", **over_models)
        yield Figure("model_landscape", means, compared | {"study": run.study["cross"]})
    # Guarantees are given over all pairs.
    yield Analysis(
        "risk_coverage",
        {"calibrators": PerPair("<results>/calibrators/{model}/{task}.json", "all")},
        pairs="all",
        quick=True,
    )
    if "trace_plus" in selection.chosen.ids:
        more = {"missing": run.missing_parts} if run.missing_parts else {}
        yield Table("risk_coverage", ["risk_coverage", "accuracy"], studies=["all"], more=more)


def _analyses(run: Run) -> Iterator[Analysis]:
    baselines = {"baselines": run.selection.chosen.baselines.ids}
    named = {"named": run.config.study.named_baseline}
    resamples = {"resamples": PerPair("<results>/resamples/{model}/{task}.parquet", "all")}
    intervals = baselines | {"studies": run.studies, "level": run.config.bootstrap.level}
    yield Analysis(
        "averages", {"measured": "<results>/metrics.parquet"}, {"studies": run.studies}, quick=True
    )
    if run.selection.on_subset:
        measured = {"measured": "<results>/subset/metrics.parquet"}
        settings = {"studies": run.main}
        yield Analysis("subset_averages", measured, settings, made_by="averages", quick=True)
    yield Analysis(
        "improvements",
        {
            "averages": AVERAGES,
            **resamples,
            "picked": PerPair("<results>/picked/{model}/{task}.parquet", "all"),
        },
        intervals | named,
        pairs="all",
        quick=True,
    )
    yield Analysis("comparisons", resamples, intervals, quick=True)
    if fits := run.selection.beyond_paper.ids:
        yield Analysis(
            "beyond_paper",
            resamples,
            intervals | {"baselines": fits},
            made_by="comparisons",
            quick=True,
        )
    yield Analysis(
        "language_averages",
        {"measured": analysed("languages")},
        {"studies": {}, "by": ["language"]},
        made_by="averages",
        quick=True,
    )
    yield Analysis(
        "language_improvements",
        {"averages": analysed("language_averages")},
        baselines | named,
        quick=True,
    )


def _of_few_estimators(run: Run) -> Iterator[Table]:
    """The tables of a few estimators' averages; those of a single one compare nothing."""
    selection = run.selection
    requires = {"requires": {e.id: e.requires for e in selection.on_subset or selection.main}}
    own = {"ablation": {"studies": ["main", "cross"]}, "broader_uq": requires}
    for name in ROWS:
        of_subset = bool(selection.on_subset) and name in OF_SUBSET
        known = selection.on_subset if of_subset else selection.main
        ids = shown(name) | (BASELINES_ON_SUBSET if of_subset and name == "broader_uq" else set())
        own_too = selection.custom if name == "broader_uq" else ()
        estimators = [*known.named(ids), *own_too]
        if len(estimators) > 1:
            yield compares(
                run,
                name,
                estimators=estimators,
                made_by="estimator_averages",
                of_subset=of_subset,
                **own.get(name, {}) | {"table": name},
            )
