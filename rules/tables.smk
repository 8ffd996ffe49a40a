# What each table is made from: the analyses that it reads, its studies and its estimators.

from tracecal.paper import published, references
from tracecal.tables import columns
from tracecal.tables.rows import ROWS
from tracecal.tables.rows import shown as shown_in
from tracecal.tables.words import count, filled, listed

ALL = {"models": sorted({m for m, _ in PAIRS}), "tasks": sorted({t for _, t in PAIRS})}


def made(*analyses, studies=("main",), estimators=(), **more):
    """What a table is made from: analyses/<name>.parquet, studies, estimators, and settings of its
    own. It gets no labels of other studies.
    """
    chosen = {name: (STUDY | {"all": ALL})[name] for name in studies}
    return {
        "analyses": analyses,
        "studies": {name: study for name, study in chosen.items() if study},
        "estimators": estimators,
        "more": more,
    }


def compares(*analyses, estimators=entries(MAIN_COMPARED), **more):
    """As `made`, of a table that compares estimators, fits or answers.

    It also says how many answers are right, which estimators score fewer, and whether a calibration
    part holds enough of them for the weights of a fit.
    """
    shown = {entry[0] for entry in estimators}
    fitted = {
        "weights": max([len(entry.inputs) for entry in CHOSEN if entry.id in shown], default=0),
        "calibration_share": CONFIG.splits.calibration_share,
    }
    every = dict.fromkeys([*analyses, "averages", "accuracy"])
    return made(*every, estimators=estimators, **fitted | more)


def rows_of(table):
    """The main model's estimators among those that a table of averages shows."""
    return entries(entry for entry in MAIN_CHOSEN if entry.id in shown_in(table))


MADE = {
    "main_comparison": compares("improvements"),
    "languages": compares(
        "improvements", "language_averages", "language_improvements", "language_accuracy"
    ),
    "hyperparameter_sensitivity": compares("hyperparameter_sensitivity", estimators=[], weights=1),
    "position_shift": compares("position_shift", estimators=[], weights=0),
    "spike_strata": compares("spike_strata", estimators=[], weights=0),
    # Its largest set of features is that of decayed entropies and surprisals.
    "spike_modeling": compares("spike_modeling_averages", estimators=[], weights=4),
    "cross_task_transfer": compares("cross_task_transfer_improvements"),
    "protocol_comparison": made(studies=[], methods=protocol_rows(CHOSEN)),
    "trace_plus_features": made(
        studies=[],
        features=list(registry.TRACE_PLUS_FEATURES),
        excluded=list(registry.LIKELIHOOD),
    ),
    **{name: compares(estimators=rows_of(name)) for name in ROWS},
    "ablation": compares(estimators=rows_of("ablation"), studies=["main", "cross"]),
    "broader_uq": compares(
        estimators=rows_of("broader_uq") + entries(OWN),
        requires={entry.id: entry.requires for entry in MAIN_CHOSEN},
    ),
}
if FOLLOWED:
    MADE |= {
        name: compares(name, estimators=REPRESENTATIVE)
        for name in ["localized_global_errors", "localized_error_subtypes"]
    } | {
        name: compares(f"{name}_averages", estimators=REPRESENTATIVE)
        for name in ["calibration_size", "reliability_selective", "length_stratified"]
    }
if STUDY["cross"]:
    MADE |= {
        name: compares("improvements", studies=["cross"], estimators=COMPARED)
        for name in ["cross_model", "cross_model_task_details", "cross_model_best_estimators"]
    }
if "trace_plus" in {entry.id for entry in CHOSEN}:
    MADE["risk_coverage"] = made("risk_coverage", "accuracy", studies=["all"])

# Averages of a single estimator compare nothing.
TABLES = [name for name in MADE if name not in ROWS or len(MADE[name]["estimators"]) > 1]

try:
    PAPER = published.read()
except InputError as error:
    raise WorkflowError(str(error)) from None
BESIDE = [
    table for table in TABLES if published.shared(PAPER.get(table, []), list(MODELS), list(TASKS))
]
# What the paper has is printed as it has it, where the configuration says so.
AS_PRINTED = {*PAPER, "trace_plus_features"} if CONFIG.tables.as_printed else set()
SHORT_MODELS = {slug: model.short_label or model.name for slug, model in MODELS.items()}
SHORT_TASKS = {slug: task.short_label or task.label for slug, task in TASKS.items()}


def labels(wildcards):
    """The labels of a table's models and tasks, its studies, and settings of its own.

    Models are in the order of the configuration. The tables of the cross-model study have short
    names, as the paper's.
    """
    studies = MADE[wildcards.table]["studies"]
    model_labels = SHORT_MODELS if wildcards.table == "cross_model_task_details" else MODEL_LABELS
    task_labels = SHORT_TASKS if [*studies] == ["cross"] else TASK_LABELS
    models = {
        slug for study in studies.values() for slug in study.get("models", [study.get("model")])
    }
    tasks = {slug for study in studies.values() for slug in study["tasks"]}
    return {
        "models": {slug: label for slug, label in model_labels.items() if slug in models},
        "tasks": {slug: task_labels[slug] for slug in sorted(tasks)},
        "studies": studies,
        "more": MADE[wildcards.table]["more"],
    }


def words(wildcards):
    """A table's title and caption; what it says of additions is left out with them."""
    main, cross = STUDY["main"], STUDY["cross"] or {"models": [], "tasks": []}
    baselines = [role for *_, role, _ in MADE[wildcards.table]["estimators"] if role == "baseline"]
    finished = wanted_pairs()

    def named(study, models, labels):
        done = {task for model, task in finished if model in models}
        return listed([labels[task] for task in sorted({*study["tasks"]} & done)] or ["none"])

    facts = {
        "model": MODEL_LABELS[main["model"]],
        "tasks": named(main, [main["model"]], TASK_LABELS),
        "cross_tasks": named(cross, cross["models"], SHORT_TASKS),
        "task_count": count(len(main_pairs(wildcards)), "task"),
        "model_count": count(len({m for m, _ in finished if m in cross["models"]}), "model"),
        "baseline_count": count(len(baselines), "baseline"),
        "mean": f"the mean over {count(CONFIG.splits.count, 'random calibration/evaluation split')}",
        "confidence": f"{CONFIG.risk_control.confidence:g}",
    }
    return filled(WORDS[wildcards.table], facts, wildcards.table in AS_PRINTED)
