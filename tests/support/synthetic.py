"""Made-up metrics that look like real ones."""

import random
from dataclasses import replace
from importlib import import_module

import polars as pl

from trace_workflow.analyses.averages import averages
from trace_workflow.analyses.gains import gains, name_most_picked
from trace_workflow.analyses.improvements import add_bounds
from trace_workflow.tables.study_results import StudyResults
from tracecal.estimators.estimator import PICKED, TRACE_PLUS, Entry
from tracecal.statistics.metrics import ACCURACY

ENTRIES = [
    Entry("first_token_prob", "First-Token Prob", "likelihood", "baseline", "chen2026firsttoken"),
    Entry("mean_prob", "MeanProb", "likelihood", "baseline", "flores2025improving"),
    Entry("len_norm_logp", "Len-Norm LogP", "likelihood", "baseline", "bakman2024mars"),
    Entry("seq_logp", "SeqLogP / Total NLL", "likelihood", "baseline", "aichberger2024rethinking"),
    Entry("min_prob", "MinProb", "likelihood", "baseline", "manakul2023selfcheckgpt"),
    Entry("mean_token_entropy", "Mean Token Entropy", "entropy", "baseline", "flores2025improving"),
    Entry(
        "max_token_entropy", "Max Token Entropy", "entropy", "baseline", "manakul2023selfcheckgpt"
    ),
    Entry("high_prob_token_rate", "High-Prob Token Rate", "likelihood", "baseline", "szymczyk2026"),
    Entry("first_k_entropy", "First-k Entropy", "entropy", "baseline", "chen2026firsttoken"),
    Entry("last_k_entropy", "Last-k Entropy", "entropy", "baseline", "li2026semantic"),
    Entry("windowed_entropy", "Windowed Entropy", "trajectory", "baseline", "sriramanan2024llm"),
    Entry("entropy_variance", "Entropy Variance", "trajectory", "baseline", "zhu2026edis"),
    Entry("entropy_slope", "Entropy Slope", "trajectory", "baseline", "zhu2026edis"),
    Entry("token_prob_slope", "Token-Prob Slope", "trajectory", "baseline", "shapiro2026halt"),
    Entry("beam_ratio", "Beam-Ratio", "beam", "baseline", "flores2025improving"),
    Entry("beam_tail_thinness", "Beam-TailThinness", "beam", "baseline", "flores2025improving"),
    Entry("beam_entropy", "Beam Entropy", "beam", "baseline", "flores2025improving"),
    Entry("trace", "TRACE", "trace", "trace", "xu2026trace"),
    Entry("trace_plus", "TRACE+", "trace", "trace", "xu2026trace"),
]
MODELS = {"tiny_b": "Tiny-B-Instruct", "tiny_a": "Tiny-A-Instruct", "tiny_c": "Tiny-C"}
TASKS = {"trivia": "TriviaQA", "svamp": "SVAMP", "truthful": "TruthfulQA", "mlqa": "MLQA"}
SKILL = {"trace_plus": 0.82, "trace": 0.78, "seq_logp": 0.76, "entropy_slope": 0.38}


def rows(values, n=65):
    """Metrics from (model, task, estimator, split, metric, value) tuples."""
    schema = ["model", "task", "estimator", "split", "metric", "value"]
    frame = pl.DataFrame(values, schema=schema, orient="row", infer_schema_length=None)
    return frame.with_columns(pl.col("value").cast(pl.Float64), pl.lit(n).alias("n"))


def study(models=MODELS, tasks=TASKS, entries=ENTRIES, splits=20, seed=0):
    """Metrics of every model on every task, with plausible levels and spreads."""
    draw = random.Random(seed)
    values = []
    for model in sorted(models):
        for task in sorted(tasks):
            base = draw.uniform(0.12, 0.22)
            for entry in entries:
                auroc = SKILL.get(entry.id, draw.uniform(0.55, 0.76)) + draw.gauss(0, 0.03)
                brier = base * (1.35 - 0.6 * max(auroc - 0.5, 0)) + draw.gauss(0, 0.004)
                for split in range(splits):
                    for metric, mean, sd in (("brier", brier, 0.006), ("auroc", auroc, 0.015)):
                        value = min(mean + draw.gauss(0, sd), 0.99)
                        values.append((model, task, entry.id, split, metric, value))
    return rows(values)


INTERVALS = {
    "study": pl.String,
    "model": pl.String,
    "task": pl.String,
    "metric": pl.String,
    "low": pl.Float64,
    "high": pl.Float64,
}


def intervals(*values):
    """Intervals from (study, model, task, metric, low, high) tuples; without any, a foreign one."""
    foreign = [(None, "foreign", "foreign", "brier", None, None)]
    frame = pl.DataFrame(list(values) or foreign, schema=INTERVALS, orient="row")
    return frame.with_columns(level=pl.lit(0.95), resamples=pl.lit(1000))


def accuracy(models=MODELS, tasks=TASKS, seed=1):
    draw = random.Random(seed)
    pairs = [(m, t, draw.randint(20, 80)) for m in sorted(models) for t in sorted(tasks)]
    return pl.DataFrame(
        [(model, task, 100, right, right / 100, 0, 0, 0) for model, task, right in pairs],
        schema=ACCURACY,
        orient="row",
    )


def answered(models, tasks, scored=()):
    """What tables that compare read of answers: how many are right, and who scores how many.

    Of 100 answers `scored` tells (model, task, estimator, n); `seq_logp` scores all.
    """
    everyone = [(model, task, "seq_logp", 100.0) for model in models for task in tasks]
    names = ["model", "task", "estimator", "n"]
    averages = pl.DataFrame([*everyone, *scored], schema=names, orient="row")
    averages = averages.with_columns(study=pl.lit(None, pl.String), metric=pl.lit("brier"))
    return {"averages": averages, "accuracy": accuracy(models, tasks)}


# How many weights TRACE+ fits, and on which share of the answers.
OPTIONS = {"weights": 8, "calibration_share": 0.35, "named_baseline": "seq_logp", "beams": 10}


def settings(entries, models, tasks, options=None, **studies):
    """The study of a table, without its frames; studies as `main=...`, `cross=...`."""
    return StudyResults({}, entries, models, tasks, studies, OPTIONS | (options or {}))


# The modules of tables that stand in one file with others.
MADE_BY = {
    **dict.fromkeys(("spike_strata", "spike_modeling"), "spikes"),
    **dict.fromkeys(
        ("calibration_size", "reliability_selective", "length_stratified"), "robustness"
    ),
    **dict.fromkeys(("protocol_comparison", "trace_plus_features"), "protocol"),
    **dict.fromkeys(
        ("cross_model_best_estimators", "cross_model_task_details"), "cross_model_details"
    ),
    **dict.fromkeys(("localisation", "part_scores"), "part_tables"),
}


def make_of(name):
    """The function that makes the table of this name, or all tables of the module of this name."""
    module = import_module(f"trace_workflow.tables.{MADE_BY.get(name, name)}")
    return getattr(module, name if name in MADE_BY else "table")


def made(name, frames, settings):
    """The table of this name, or of the module of this name, with a title and a caption."""
    table = make_of(name)(replace(settings, frames=frames))
    return replace(table, name=name, title="Title", caption="Caption.")


def baselines_of(entries):
    return [entry.id for entry in entries if entry.role == "baseline"]


def with_picked(metrics, entries):
    """The metrics, and those of the first baseline once more as the picked one."""
    first = metrics.filter(estimator=baselines_of(entries)[0]) if baselines_of(entries) else []
    return (
        metrics
        if not len(first)
        else pl.concat([metrics, first.with_columns(estimator=pl.lit(PICKED))])
    )


def improvements(means, entries, studies, bounds):
    """The improvements in `means`, with made-up intervals, the same against both baselines and, of
    own scores, against TRACE+.

    The first baseline is picked in every split, and the last is the named one.
    """
    baselines = baselines_of(entries)
    named = baselines[-1] if baselines else "seq_logp"
    pairs = means.filter(pl.col("study").is_null()).select("model", "task").unique().rows()
    own = [entry.id for entry in entries if entry.role == "own"]
    gained = gains(means, baselines, named, own)
    gained = name_most_picked(gained, dict.fromkeys(pairs, baselines[:1]), studies)
    level, resamples = bounds["level"][0], bounds["resamples"][0]
    ends = {
        (*row[:4], estimator, against): (*row[4:], resamples)
        for row in bounds.select(*INTERVALS).iter_rows()
        for estimator in (TRACE_PLUS, *own)
        for against in ("picked", "named", TRACE_PLUS)
    }
    return add_bounds(gained, ends, studies, level)


def frames(metrics, entries, bounds=None, **studies):
    """The averages and improvements of made-up metrics, of a run that compares `entries`."""
    compared = [entry.id for entry in entries if entry.role in ("baseline", "own", "trace")]
    shown = metrics.filter(pl.col("estimator").is_in(compared))
    means = averages(with_picked(shown, entries), studies)
    bounds = intervals() if bounds is None else bounds
    return {
        "averages": means,
        "improvements": improvements(means, entries, studies, bounds),
        "accuracy": accuracy(sorted(set(metrics["model"])), sorted(set(metrics["task"]))),
    }
