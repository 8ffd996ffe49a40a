# What each analysis is made from. `analysis(**inputs, **settings)` of a module of the room `analyse`
# makes it: the one of its name, unless it says another.

from functools import partial

MAIN = {"main": {key: STUDY["main"][key] for key in ("model", "tasks")}}
STUDIES = MAIN | (
    {"cross": {key: STUDY["cross"][key] for key in ("models", "tasks")}} if STUDY["cross"] else {}
)
BASELINES = [entry.id for entry in CHOSEN if entry.role == "baseline"]
METHOD, LEVEL = CONFIG.calibration.method, CONFIG.bootstrap.level
BINS = CONFIG.calibration.ece_bins
# One bootstrap for all intervals.
BOOTSTRAP = [CONFIG.seed, CONFIG.bootstrap.resamples, LEVEL]

# Files of each of the main study's pairs.
MAIN_FILES = {
    kind: of_main(f"<results>/{kind}/{{model}}/{{task}}.parquet")
    for kind in ("operators", "features", "labels", "scores", "predictions")
} | {
    "traces": of_main("<results>/traces/{model}/{task}.arrow"),
    "splits": of_main("<results>/splits/{task}.parquet"),
    "tasks": of_main("<results>/tasks/{task}.parquet"),
    "questions": of_main(questions),
}


def analysis(inputs, made_by="{analysis}", **settings):
    """An analysis of files: its inputs by name, its module and settings."""
    return SimpleNamespace(inputs=inputs, made_by=made_by, settings=settings)


def of_pairs(*kinds, made_by="{analysis}", **settings):
    """An analysis of the main study's pairs: which kinds of their files it reads, and the rest."""
    files = {kind: MAIN_FILES[kind] for kind in kinds}
    return analysis(files, made_by, pairs=main_pairs, **settings)


def averages_of(name, **settings):
    """The averages of what another analysis measures."""
    return analysis({"measured": f"<results>/analyses/{name}.parquet"}, **settings)


spikes = of_pairs(
    "features", "labels", "tasks", made_by="spike_strata", bootstrap=BOOTSTRAP, name="{analysis}"
)
reliability = partial(
    of_pairs,
    "predictions",
    "labels",
    made_by="reliability_selective",
    estimators=[entry.id for entry in FOLLOWED],
    ece_bins=BINS,
)
localized_errors = of_pairs(
    *("scores", "predictions", "features", "labels", "tasks"),
    made_by="localized_errors",
    name="{analysis}",
    scored=[entry.id for entry in FOLLOWED if not entry.features],
    learned=[entry.id for entry in FOLLOWED if entry.features],
    baselines=[entry.id for entry in FOLLOWED if entry.role == "baseline"],
    bootstrap=BOOTSTRAP,
)

# Those that take a second.
SUMMARIES = {
    "averages": analysis({"measured": "<results>/metrics.parquet"}, studies=STUDIES),
    "language_averages": averages_of("languages", made_by="averages", studies={}, by=["language"]),
    "calibration_size_averages": averages_of(
        "calibration_size", made_by="averages", studies=MAIN, by=["calibration_share"]
    ),
    "length_stratified_averages": averages_of(
        "length_stratified", made_by="averages", studies=MAIN, by=["stratum"]
    ),
    "spike_modeling_averages": averages_of(
        "spike_modeling", made_by="pooled_averages", what="features"
    ),
    "reliability_selective_averages": averages_of(
        "reliability_selective", made_by="pooled_averages", what="estimator"
    ),
    "improvements": analysis(
        {
            "averages": "<results>/analyses/averages.parquet",
            "resamples": pairs("<results>/resamples/{model}/{task}.parquet"),
        },
        baselines=BASELINES,
        studies=STUDIES,
        level=LEVEL,
    ),
    "language_improvements": analysis(
        {"averages": "<results>/analyses/language_averages.parquet"}, baselines=BASELINES
    ),
    "risk_coverage": analysis(
        {"calibrators": pairs("<results>/calibrators/{model}/{task}.json")},
        pairs=lambda wildcards: [list(pair) for pair in wanted_pairs()],
    ),
}
ANALYSES = SUMMARIES | {
    "hyperparameter_sensitivity": of_pairs(
        "operators", "labels", "splits", method=METHOD, ece_bins=BINS
    ),
    "position_shift": of_pairs("operators", "labels", "splits"),
    "spike_strata": spikes,
    "spike_quintiles": spikes,
    "spike_modeling": of_pairs("features", "labels", "splits", method=METHOD),
    "localized_global_errors": localized_errors,
    "localized_error_subtypes": localized_errors,
    "local_risk": of_pairs("traces", "features", "labels"),
    "calibration_size": of_pairs(
        *("labels", "scores", "features", "splits", "questions"),
        estimators={entry.id: entry.inputs for entry in FOLLOWED},
        method=METHOD,
        ece_bins=BINS,
        share=CONFIG.splits.calibration_share,
    ),
    "reliability_selective": reliability(part="pooled"),
    "reliability_bins": reliability(part="bins"),
    "risk_coverage_curve": reliability(part="curve"),
    "length_stratified": of_pairs(
        *("predictions", "labels", "scores", "features"),
        estimators=[entry.id for entry in FOLLOWED],
        ece_bins=BINS,
    ),
}
ANALYSIS_INPUTS = {name: entry.inputs for name, entry in ANALYSES.items()}
ANALYSIS_SETTINGS = {name: entry.settings for name, entry in ANALYSES.items()}


def analysis_module(wildcards):
    """The module that makes an analysis."""
    return for_job(f"tracecal.analyse.{ANALYSES[wildcards.analysis].made_by}", wildcards)
