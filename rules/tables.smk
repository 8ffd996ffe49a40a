# What each table is made from: which analyses it reads, of which studies and estimators it speaks.

from tracecal.paper import published, references
from tracecal.tables.rows import ROWS
from tracecal.tables.rows import shown as shown_in
from tracecal.tables.words import count, filled, listed

ALL = {"models": sorted({m for m, _ in PAIRS}), "tasks": sorted({t for _, t in PAIRS})}


def made(*analyses, studies=("main",), estimators=COMPARED, **more):
    """What a table is made from: analyses/<name>.parquet, studies, estimators, and what it alone
    asks for. Labels of other studies are none of its business.
    """
    chosen = {name: (STUDY | {"all": ALL})[name] for name in studies}
    return {
        "analyses": analyses,
        "studies": {name: study for name, study in chosen.items() if study},
        "estimators": estimators,
        "more": more,
    }


def rows_of(table):
    """The chosen estimators among those that a table of averages shows."""
    return entries(one for one in CHOSEN if one.id in shown_in(table))


# How many weights TRACE+ fits, and on which share of the answers.
FITTED = {
    "weights": len(registry.TRACE_PLUS_FEATURES),
    "calibration_share": CONFIG.splits.calibration_share,
}
MADE = {
    "main_comparison": made("averages", "improvements", "accuracy", **FITTED),
    "languages": made("averages", "improvements", "language_averages", "language_improvements"),
    "hyperparameter_sensitivity": made("hyperparameter_sensitivity", estimators=[]),
    "position_shift": made("position_shift", estimators=[]),
    "spike_strata": made("spike_strata", estimators=[]),
    "spike_modeling": made("spike_modeling_averages", estimators=[]),
    "cross_task_transfer": made("cross_task_transfer_improvements"),
    "protocol_comparison": made(studies=[], estimators=[], methods=protocol_rows(CHOSEN)),
    "trace_plus_features": made(
        studies=[],
        estimators=[],
        features=list(registry.TRACE_PLUS_FEATURES),
        excluded=list(registry.LIKELIHOOD),
    ),
    **{name: made("averages", estimators=rows_of(name)) for name in ROWS},
    "ablation": made("averages", estimators=rows_of("ablation"), studies=["main", "cross"]),
    "broader_uq": made(
        "averages",
        estimators=rows_of("broader_uq"),
        requires={one.id: one.requires for one in CHOSEN if one.id in shown_in("broader_uq")},
    ),
}
if FOLLOWED:
    MADE |= {
        name: made(name, estimators=REPRESENTATIVE)
        for name in ["localized_global_errors", "localized_error_subtypes"]
    } | {
        name: made(f"{name}_averages", estimators=REPRESENTATIVE)
        for name in ["calibration_size", "reliability_selective", "length_stratified"]
    }
if STUDY["cross"]:
    MADE |= {
        "cross_model": made("improvements", "accuracy", studies=["cross"], **FITTED),
        "cross_model_task_details": made("improvements", studies=["cross"]),
        "cross_model_best_estimators": made("improvements", studies=["cross"]),
    }
if "trace_plus" in {one.id for one in CHOSEN}:
    MADE["risk_coverage"] = made("risk_coverage", studies=["all"], estimators=[])

# Averages of a single estimator compare nothing.
TABLES = [name for name in MADE if name not in ROWS or len(MADE[name]["estimators"]) > 1]

try:
    PAPER = published.read()
except InputError as error:
    raise WorkflowError(str(error)) from None
BESIDE = [table for table in TABLES if table in PAPER]


def labels(wildcards):
    """The labels of a table's models and tasks, its studies, and what it alone asks for."""
    studies = MADE[wildcards.table]["studies"]
    models = {
        slug for study in studies.values() for slug in study.get("models", [study.get("model")])
    }
    tasks = {slug for study in studies.values() for slug in study["tasks"]}
    return {
        "models": {slug: MODEL_LABELS[slug] for slug in sorted(models)},
        "tasks": {slug: TASK_LABELS[slug] for slug in sorted(tasks)},
        "studies": studies,
        "more": MADE[wildcards.table]["more"],
    }


def words(wildcards):
    """A table's title and caption."""
    main, cross = STUDY["main"], STUDY["cross"] or {"models": [], "tasks": []}
    baselines = [one for one in CHOSEN if one.role == "baseline"]
    finished = wanted_pairs()

    def named(study, models):
        done = {task for model, task in finished if model in models}
        return listed([TASK_LABELS[task] for task in sorted({*study["tasks"]} & done)] or ["none"])

    facts = {
        "model": MODEL_LABELS[main["model"]],
        "tasks": named(main, [main["model"]]),
        "cross_tasks": named(cross, cross["models"]),
        "task_count": count(len(main_pairs(wildcards)), "task"),
        "model_count": count(len({m for m, _ in finished if m in cross["models"]}), "model"),
        "baseline_count": count(len(baselines), "baseline"),
        "mean": f"the mean over {count(CONFIG.splits.count, 'random calibration/evaluation split')}",
        "confidence": f"{CONFIG.risk_control.confidence:g}",
    }
    return filled(WORDS[wildcards.table], facts)
