"""The analyses of the main study's answers and of their parts, with their tables and figures."""

from collections.abc import Iterator, Mapping
from typing import Any

from trace_workflow.config.estimator_list import EstimatorList
from trace_workflow.config.run import Run
from trace_workflow.contents.comparison import comparison_table
from trace_workflow.contents.entries import Analysis, Figure, PlannedTable, analysed, pair_files
from tracecal.estimators.estimator import PICKED, entries


def results(run: Run) -> Iterator[Analysis | Figure | PlannedTable]:
    """The analyses, tables and figures of the main study's answers, and of parts of answers."""
    yield from _operators(run)
    yield from _spikes(run)
    yield from _representative(run)
    yield from _few_labels(run)
    yield from _transfer(run)
    yield _of_pairs("local_risk", "traces features labels")
    yield Figure("local_risk_aggregation", {"selected": analysed("local_risk")})
    yield Figure("framework", pair_files("traces features labels predictions tasks"), pairs="main")
    if run.missing_parts:
        yield from _parts(run)


def _operators(run: Run) -> Iterator[Analysis | Figure | PlannedTable]:
    """Variants of TRACE's operators."""
    kinds = "operators labels splits"
    yield _of_pairs("hyperparameter_sensitivity", kinds, _calibration(run))
    yield comparison_table(
        run, "hyperparameter_sensitivity", "hyperparameter_sensitivity", estimators=[], weights=1
    )
    yield _of_pairs("position_shift", kinds)
    yield comparison_table(run, "position_shift", "position_shift", estimators=[], weights=0)


def _spikes(run: Run) -> Iterator[Analysis | Figure | PlannedTable]:
    """Answers with and without a local spike of uncertainty."""
    for name in ("spike_strata", "spike_quintiles"):
        settings = {"bootstrap": run.bootstrap, "name": name}
        yield _of_pairs(name, "features labels tasks", settings, made_by="spike_strata")
    spikes = {"estimators": [], "made_by": "spikes"}
    yield comparison_table(
        run, "spike_strata", "spike_strata", **spikes, function="spike_strata", weights=0
    )
    method = {"method": run.config.calibration.method}
    yield _of_pairs("spike_modeling", "features labels splits", method)
    yield _averages("spike_modeling", "average_pooled", what="features")
    # Its largest set of features is that of decayed entropies and surprisals.
    spikes |= {"function": "spike_modeling", "weights": 4}
    yield comparison_table(run, "spike_modeling", "spike_modeling_averages", **spikes)
    panels = {"strata": analysed("spike_strata"), "quintiles": analysed("spike_quintiles")}
    yield Figure("spike_evidence", panels)


def _representative(run: Run) -> Iterator[Analysis | Figure | PlannedTable]:
    """Representative estimators: by error, calibration size, coverage and length."""
    representative = run.selection.representative
    bins = {"ece_bins": run.config.calibration.ece_bins}
    localized = {
        "scored": representative.scored.ids,
        "learned": representative.learned.ids,
        "named_baseline": run.config.study.named_baseline,
        "bootstrap": run.bootstrap,
    }
    for name in ("localized_global_errors", "localized_error_subtypes"):
        kinds = "scores predictions features labels tasks"
        yield _of_pairs(name, kinds, {"name": name} | localized, made_by="localized_errors")
    sizes = {"estimators": representative.inputs} | _calibration(run)
    sizes["share"] = run.config.splits.calibration_share
    yield _of_pairs("calibration_size", "labels scores features splits questions", sizes)
    measured = {"estimators": representative.ids} | bins
    for name, part in {
        "reliability_selective": "pooled",
        "reliability_bins": "bins",
        "risk_coverage_curve": "curve",
    }.items():
        settings = measured | {"part": part}
        yield _of_pairs(name, "predictions labels", settings, made_by="reliability_selective")
    yield _of_pairs("length_stratified", "predictions labels scores features", measured)
    yield _averages("calibration_size", "analysis", studies=run.main, by=["calibration_share"])
    yield _averages("length_stratified", "analysis", studies=run.main, by=["stratum"])
    yield _averages("reliability_selective", "average_pooled", what="estimator")
    if not representative:
        return
    options = {"made_by": "localized_errors", "named_baseline": run.config.study.named_baseline}
    for name in ("localized_global_errors", "localized_error_subtypes"):
        yield comparison_table(run, name, name, estimators=representative, table=name, **options)
    options = {"estimators": representative, "made_by": "robustness"}
    for name in ("calibration_size", "reliability_selective", "length_stratified"):
        yield comparison_table(run, name, f"{name}_averages", function=name, **options)
    panels = {
        "sizes": analysed("calibration_size_averages"),
        "bins": analysed("reliability_bins"),
        "curve": analysed("risk_coverage_curve"),
        "stratified": analysed("length_stratified_averages"),
    }
    settings = {"entries": entries(representative), "study": run.study["main"]}
    settings["share"] = run.config.splits.calibration_share
    yield Figure("robustness_panels", panels, settings)


def _few_labels(run: Run) -> Iterator[Analysis | Figure | PlannedTable]:
    """TRACE+, the fits on logarithms and the baselines, at fixed numbers of labels."""
    selection = run.selection
    baselines = selection.compared_of().baselines
    fits = selection.main.with_ids(["trace_plus", *selection.beyond_paper.ids])
    if "trace_plus" not in fits.ids:
        return
    references = {run.config.study.named_baseline, "seq_logp", "len_norm_logp"}
    estimators = EstimatorList([*fits, *baselines.with_ids(references)])
    seed, resamples, level = run.bootstrap
    settings = {
        "estimators": fits.inputs | baselines.inputs,
        "own_fits": fits.own_fits,
        "row_ids": [*estimators.ids, PICKED],
        "baselines": baselines.ids,
        "method": run.config.calibration.method,
        **{"seed": seed, "resamples": resamples, "level": level},
    }
    yield _of_pairs("few_labels", "labels scores features splits questions", settings)
    yield PlannedTable("few_labels", ["few_labels"], estimators=estimators)


def _parts(run: Run) -> Iterator[Analysis | Figure | PlannedTable]:
    """Parts of answers."""
    estimators, bootstrap = run.selection.of_parts, {"bootstrap": run.bootstrap}
    files = pair_files("traces wholes labels splits questions", "parts")
    yield Analysis("localisation", files, bootstrap, pairs="parts")
    files = pair_files("labels questions scores predictions whole_scores", "parts")
    settings = {"scored": estimators.scored.ids, "learned": estimators.learned.ids} | bootstrap
    yield Analysis("part_scores", files, settings, pairs="parts")
    for name, more in {
        "localisation": {"more": {"missing": run.missing_parts}},
        "part_scores": {"estimators": estimators},
    }.items():
        yield PlannedTable(
            name, [name], studies=["parts"], made_by="part_tables", function=name, **more
        )


def _transfer(run: Run) -> Iterator[Analysis | Figure | PlannedTable]:
    """Each task calibrated on the others."""
    baseline = {"named_baseline": run.config.study.named_baseline}
    settings = {
        "studies": run.main,
        "estimators": run.selection.compared_of().inputs,
        "baselines": run.selection.compared_of().baselines.ids,
        "bootstrap": run.bootstrap,
    }
    name = "cross_task_transfer"
    yield _of_pairs(
        f"{name}_improvements",
        "labels scores features splits questions",
        settings | baseline | _calibration(run),
        made_by=name,
    )
    yield comparison_table(run, name, f"{name}_improvements", **baseline)


def _calibration(run: Run) -> dict[str, Any]:
    return {"method": run.config.calibration.method, "ece_bins": run.config.calibration.ece_bins}


def _of_pairs(
    name: str, kinds: str, settings: Mapping[str, Any] | None = None, made_by: str = ""
) -> Analysis:
    """An analysis of the main study's pairs, from these `kinds` of files."""
    return Analysis(name, pair_files(kinds), settings or {}, pairs="main", made_by=made_by)


def _averages(name: str, function: str, **settings: Any) -> Analysis:
    """The averages of the analysis `name`, by a `function` of `analyses.averages`."""
    measured = {"measured": analysed(name)}
    return Analysis(
        f"{name}_averages", measured, settings, made_by="averages", function=function, quick=True
    )
