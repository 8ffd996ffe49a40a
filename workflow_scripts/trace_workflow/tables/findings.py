"""A run's findings: problems, its guarantee, its answers, TRACE+ beside baselines, and more."""

from collections.abc import Mapping

import polars as pl

from trace_workflow.tables.answer_findings import (
    find_localisation,
    find_position_effect,
)
from trace_workflow.tables.baseline_findings import (
    compare_with_baselines,
    count_at_once,
    count_wins_over_models,
    find_best_in_hindsight,
    rank_other_methods,
)
from trace_workflow.tables.finding import Finding, Topic
from trace_workflow.tables.standing_notes import missing_answers, needed_answers
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.wording import count, join_names
from tracecal.calibrator.catalogue import MEAN_OF_THREE

MAIN = "main_comparison"
RUN = Topic("run", MAIN, "{models} gave {n:,} answers to {tasks}.")
ANSWERS = Topic("answers", MAIN, "{model} answers correctly: {counts}.")
MISSING = Topic("missing", MAIN)
CUT = Topic(
    "problem",
    MAIN,
    "Answers of {model} were cut at the limit of tokens: {counts}. Raise `max_new_tokens`, or set "
    "`stop`, before you use these results.",
)
UNENDED = Topic(
    "problem",
    MAIN,
    "Most answers of {model} ran to the limit of tokens: {counts}. The token that ends its turns "
    "may be undeclared: `show_prompt` prints those that are declared, and generation_config.json "
    "may name more. If answers are meant to be long, raise `max_new_tokens`, or set `stop`.",
)
UNTEMPLATED = Topic(
    "problem",
    MAIN,
    "{models} without a chat template: asked in plain text, in which a model that was trained on "
    "chats answers worse. Set `chat: false` if you mean that.",
)
ONE_CLASS = Topic(
    "problem", MAIN, "All answers of {model} on {tasks} are {verdict}: nothing can be compared."
)
TOO_FEW = Topic(
    "problem", MAIN, "Too few labels of {model} to compare estimators or to guarantee: {counts}."
)
# A problem is that more than this share of the answers is cut, or that fewer labels calibrate or
# fewer answers are of one kind.
CUT_SHARE, LEAST_LABELS, LEAST_OF_A_CLASS = 0.1, 20, 5
MOST = 0.5  # a share of answers, above which being cut is no matter of a few long ones
CAVEAT = Topic(
    "caveat",
    MAIN,
    "Labels are few, so the numbers may change: {n} on {task}, where {advice}.",
)
GUARANTEE = Topic(
    "guarantee", "risk_coverage", "{model} is wrong on {wrong:.0f}% of {task}. {guarantee}"
)
GIVEN = "Keep the surest {percent:.0f}%{ranking}: at most {rate} of them are wrong ({terms})."
REFUSED = "No threshold{ranking} guarantees at most {rate} wrong ({terms}): {reason}."


def find_all(study: StudyResults) -> list[Finding]:
    """The findings from the analyses: first problems, then the guarantee that was fixed beforehand.

    The study has the run's estimators and labels, and the options of the main comparison.
    """
    frames = {name: frame.fill_nan(None) for name, frame in study.frames.items()}
    main = study.studies["main"]
    in_main = pl.col("task").is_in(main["tasks"]), pl.col("model") == main["model"]
    labels = study.labels | study.models
    improvements = frames["improvements"]
    pairs = improvements.filter(pl.col("study").is_null(), *in_main)
    oracle = improvements.filter(study="main", metric="auroc", against="oracle")
    broader = [entry.id for entry in study.with_role("broader")]
    averages = frames["averages"].filter(pl.col("task").is_null(), study="main", metric="auroc")
    over_models = improvements.filter(pl.col("model").is_null(), study="cross")
    findings = [find_run(study), *find_answers(study)]
    if "risk_coverage" in frames and study.options.get("headline"):
        findings = [*find_guarantee(frames["risk_coverage"].filter(*in_main), study), *findings]
    findings = [*find_problems(study), *findings]
    findings += compare_with_baselines(improvements.filter(study="main"), study.tasks, labels)
    findings += compare_with_baselines(pairs, study.tasks, labels)
    if "comparisons" in frames:
        findings += count_at_once(frames["comparisons"])
    findings += find_best_in_hindsight(oracle, labels)
    findings += rank_other_methods(averages.filter(pl.col("estimator").is_in(broader)), labels)
    if "position_shift" in frames:
        findings += find_position_effect(frames["position_shift"])
    if "localisation" in frames:
        findings += find_localisation(frames["localisation"], study)
    findings += count_wins_over_models(over_models)
    return findings


def find_run(study: StudyResults) -> Finding:
    """What the run did. Parts of answers do not count as answers."""
    parts = list(study.options.get("missing", {}))
    answers = study.frames["accuracy"].filter(~pl.col("task").is_in(parts))
    main, n_more = study.studies["main"]["model"], answers["model"].n_unique() - 1
    more = f" and {count(n_more, 'other model')}" if n_more else ""
    return RUN.finding(
        models=f"{study.models[main]}{more}",
        n=answers["n"].sum(),
        tasks=count(answers["task"].n_unique(), "task"),
    )


def find_guarantee(thresholds: pl.DataFrame, study: StudyResults) -> list[Finding]:
    """The guarantee of the task and error rate that the configuration fixes, given or not.

    Choosing them here, by what came out, would make the stated confidence too high.
    """
    accuracies = study.frames["accuracy"].select("model", "task", "accuracy")
    fixed = thresholds.filter(**study.options["headline"])
    rows = fixed.join(accuracies, on=["model", "task"])
    return [
        GUARANTEE.finding(
            model=study.models[row["model"]],
            task=study.tasks[row["task"]],
            wrong=100 * (1 - row["accuracy"]),
            guarantee=_guarantee(row, study.labels),
        )
        for row in rows.iter_rows(named=True)
    ]


def _guarantee(row: Mapping, labels: Mapping[str, str]) -> str:
    terms = f"{row['confidence']:.0%} confidence"
    if row.get("most_parts"):
        terms += f"; parts of answers with more than {row['most_parts']} are never kept"
    sentence = GIVEN if row["threshold"] is not None else REFUSED
    rate, percent = f"{100 * row['error_rate']:g}%", 100 * row["coverage"]
    is_default = row["ranked_by"] == MEAN_OF_THREE
    ranking = "" if is_default else f" by {labels[row['ranked_by']]}"
    words = {"terms": terms, "rate": rate, "percent": percent, "ranking": ranking}
    return sentence.format(**dict(row) | words)


def find_problems(study: StudyResults) -> list[Finding]:
    """What makes the other findings worthless: cut answers, one class, or too few labels."""
    if not (accuracies := study.accuracies):
        return []
    parts, findings = study.options.get("missing", {}), []
    model = study.models[study.studies["main"]["model"]]
    answers = [row for row in accuracies if row["task"] not in parts]
    cut = [
        f"{row['cut']} of {row['n']} on {study.tasks[row['task']]}"
        for row in answers
        if row["cut"] > CUT_SHARE * row["n"]
    ]
    if cut:
        is_most = any(row["cut"] > MOST * row["n"] for row in answers)
        findings.append((UNENDED if is_most else CUT).finding(model=model, counts=join_names(cut)))
    plain = {study.models[row["model"]]: None for row in answers if row["asked_without_template"]}
    if plain:
        findings.append(UNTEMPLATED.finding(models=join_names([*plain])))
    for verdict in ("right", "wrong"):
        tasks = [
            study.tasks[row["task"]]
            for row in accuracies
            if row["correct"] == (row["n"] if verdict == "right" else 0)
        ]
        if tasks:
            findings.append(
                ONE_CLASS.finding(model=model, tasks=join_names(tasks), verdict=verdict)
            )
    few = [text for row in accuracies if (text := _too_few_labels(row, study))]
    return findings + ([TOO_FEW.finding(model=model, counts=join_names(few))] if few else [])


def _too_few_labels(row: Mapping, study: StudyResults) -> str | None:
    """How few labels a task has, where they are too few for any result; None for one class."""
    task, n = study.tasks[row["task"]], round(study.options["calibration_share"] * row["n"])
    n_wrong = row["n"] - row["correct"]
    if not min(row["correct"], n_wrong):
        return None
    if n < LEAST_LABELS:
        return f"{n} calibrate on {task}"
    n_rarer, verdict = min((row["correct"], "right"), (n_wrong, "wrong"))
    return f"{n_rarer} of {row['n']} {verdict} on {task}" if n_rarer < LEAST_OF_A_CLASS else None


def find_answers(study: StudyResults) -> list[Finding]:
    """How many answers are correct, whether some are missing, and whether labels are few."""
    accuracies, findings = study.accuracies, []
    if accuracies:
        model = study.models[study.studies["main"]["model"]]
        counts = [
            f"{row['correct']} of {row['n']} on {study.tasks[row['task']]}" for row in accuracies
        ]
        findings.append(ANSWERS.finding(model=model, counts=join_names(counts)))
    findings += [MISSING.finding(sentence=note) for note in missing_answers(accuracies, study)]
    return findings + _find_few_labels(study)


def _find_few_labels(study: StudyResults) -> list[Finding]:
    """A warning where fits have fewer labels than advised, on the task that lacks most."""
    n_weights, share = study.options["weights"], study.options["calibration_share"]
    lacking = []
    for row in study.accuracies:
        rarer = min(row["correct"], row["n"] - row["correct"])
        needed, n = needed_answers(n_weights, rarer / row["n"]), round(share * row["n"])
        if n < needed:
            lacking.append((needed / max(n, 1), needed, n, study.tasks[row["task"]]))
    if not lacking:
        return []
    _, needed, n, task = max(lacking)
    one_class = needed == float("inf")
    advice = "all are of one class" if one_class else f"{needed:.0f} are advised"
    return [CAVEAT.finding(n=n, task=task, advice=advice)]
