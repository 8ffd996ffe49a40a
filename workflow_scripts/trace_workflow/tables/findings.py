"""A run's findings: problems, own scores, the guarantee, its answers, and TRACE+'s comparisons."""

from collections.abc import Mapping
from itertools import product

import polars as pl

from trace_workflow.tables.finding import Finding, compare
from trace_workflow.tables.standing_notes import missing_answers, needed_answers
from trace_workflow.tables.study_results import StudyResults, rows_by
from trace_workflow.tables.wording import count, join_names
from tracecal.calibrator.catalogue import MEAN_OF_THREE
from tracecal.estimators.estimator import TRACE_PLUS

MAIN = "main_comparison"
RIVALS = {
    "named": "the prespecified baseline, {label}",
    "picked": "the baseline selected on the calibration data, most often {label}",
    TRACE_PLUS: "TRACE+",
    "oracle": "the best baseline in hindsight, {label}, which nobody can pick in advance",
}
# By study, None for its single tasks: what an estimator is compared with, and by which metrics.
CHOSEN = [*product(("named", "picked", TRACE_PLUS), ("auroc", "brier"))]
COMPARED = {
    "main": [*CHOSEN, ("oracle", "auroc")],
    None: [("picked", "auroc"), (TRACE_PLUS, "auroc")],
    "cross": CHOSEN,
}
# The direction of other raw scores is not fitted, so calibrated probabilities have to win as well.
CONFIRMED_BY = {"auroc": "auroc_calibrated"}
# A problem is that more than this share of the answers is cut, or that fewer labels calibrate or
# fewer answers are of one kind.
CUT_SHARE, LEAST_LABELS, LEAST_OF_A_CLASS = 0.1, 20, 5
MOST = 0.5  # a share of answers, above which being cut is no matter of a few long ones


def find_all(study: StudyResults) -> list[Finding]:
    """The findings from the analyses: first problems, then own scores, then the guarantee that was
    fixed beforehand.

    The study has the run's estimators and labels, and the options of the main comparison.
    """
    frames = {name: frame.fill_nan(None) for name, frame in study.frames.items()}
    findings = find_problems(study)
    for entry in study.with_role("own"):
        findings += compare_estimator(frames["improvements"], study, entry.id)
    findings += find_unscored(study)
    if "risk_coverage" in frames and study.options.get("headline"):
        findings += find_guarantee(frames["risk_coverage"], study)
    findings += [find_run(study), *find_answers(study)]
    for remark in study.options.get("remarks", ()):
        findings.append(Finding("remark", f"{remark[:1].upper()}{remark[1:]}", MAIN))
    return findings + compare_estimator(frames["improvements"], study, TRACE_PLUS)


def compare_estimator(
    improvements: pl.DataFrame, study: StudyResults, estimator: str
) -> list[Finding]:
    """What COMPARED says of an estimator: over the main study's tasks, on each, over all models."""
    main = study.studies["main"]
    scopes = [("main", main["model"], None)]
    scopes += [(None, main["model"], task) for task in main["tasks"] if len(main["tasks"]) > 1]
    scopes += [("cross", None, None)]
    keys = ("study", "model", "task", "against", "metric")
    rows = rows_by(improvements.filter(estimator=estimator), *keys)
    findings = []
    for scope in scopes:
        for against, metric in COMPARED[scope[0]]:
            # Where no baseline has a value, there is none to compare with.
            if (row := rows.get((*scope, against, metric))) and row["baseline"]:
                label = study.labels.get(row["baseline"], row["baseline"])
                sides = (study.labels.get(estimator, "TRACE+"), RIVALS[against].format(label=label))
                confirming = rows.get((*scope, against, CONFIRMED_BY.get(metric)))
                fields = {"table": "cross_model" if scope[0] == "cross" else MAIN}
                fields |= {"task_label": study.tasks.get(row["task"])}
                where = f"On {study.tasks[row['task']]}, " if row["task"] else ""
                if row["study"] == "cross":
                    where = f"Over {count(row['tasks'], 'pair')} of model and task, "
                findings.append(compare(row | fields, sides, where, confirming))
    return findings


def find_unscored(study: StudyResults) -> list[Finding]:
    """How many answers go without an own score, which is compared on the others alone."""
    own_labels = {entry.id: entry.label for entry in study.with_role("own")}
    return [
        Finding(
            "unscored",
            f"{own_labels[estimator]} has no value for {100 * (1 - share):.1f} % of the answers of "
            f"{study.models[model]} to {study.tasks[task]}, and is compared on the others.",
            MAIN,
        )
        for (model, task, estimator), share in (study.scored_shares if own_labels else {}).items()
        if estimator in own_labels
    ]


def find_run(study: StudyResults) -> Finding:
    """What the run did. Parts of answers do not count as answers."""
    parts = list(study.options.get("missing", {}))
    answers = study.frames["accuracy"].filter(~pl.col("task").is_in(parts))
    main, n_more = study.studies["main"]["model"], answers["model"].n_unique() - 1
    models = study.models[main] + (f" and {count(n_more, 'other model')}" if n_more else "")
    tasks = count(answers["task"].n_unique(), "task")
    return Finding("run", f"{models} gave {answers['n'].sum():,} answers to {tasks}.", MAIN)


def find_guarantee(thresholds: pl.DataFrame, study: StudyResults) -> list[Finding]:
    """The guarantee of the task and error rate that the configuration fixes, given or not.

    Choosing them here, by what came out, would make the stated confidence too high.
    """
    accuracies = study.frames["accuracy"].select("model", "task", "accuracy")
    fixed = thresholds.filter(model=study.studies["main"]["model"], **study.options["headline"])
    findings = []
    for row in fixed.join(accuracies, on=["model", "task"]).iter_rows(named=True):
        terms = f"{100 * row['confidence']:.0f} % confidence"
        if row.get("most_parts"):
            terms += f"; parts of answers with more than {row['most_parts']} are never kept"
        is_default = row["ranked_by"] == MEAN_OF_THREE
        ranking = "" if is_default else f" by {study.labels[row['ranked_by']]}"
        rate = f"{100 * row['error_rate']:g} %"
        keep = f"Keep the surest {100 * row['coverage']:.0f} %{ranking}: at most {rate} of them are"
        none = f"No threshold{ranking} guarantees at most {rate} wrong ({terms}): {row['reason']}."
        guarantee = none if row["threshold"] is None else f"{keep} wrong ({terms})."
        wrong = f"{study.models[row['model']]} is wrong on {100 * (1 - row['accuracy']):.0f} %"
        sentence = f"{wrong} of {study.tasks[row['task']]}. {guarantee}"
        findings.append(Finding("guarantee", sentence, "risk_coverage"))
    return findings


def find_problems(study: StudyResults) -> list[Finding]:
    """What makes the other findings worthless: cut answers, one class, or too few labels."""
    if not (accuracies := study.accuracies):
        return []
    parts, sentences = study.options.get("missing", {}), []
    model = study.models[study.studies["main"]["model"]]
    cut = [
        f"{row['cut']} of {row['n']} on {study.tasks[row['task']]}"
        for row in accuracies
        if row["task"] not in parts and row["cut"] > CUT_SHARE * row["n"]
    ]
    if cut and any(row["cut"] > MOST * row["n"] for row in accuracies if row["task"] not in parts):
        sentences.append(
            f"Most answers of {model} ran to the limit of tokens: {join_names(cut)}. The token "
            "that ends its turns may be undeclared: `show_prompt` prints those that are declared, "
            "and generation_config.json may name more. If answers are meant to be long, raise "
            "`max_new_tokens`, or set `stop`."
        )
    elif cut:
        sentences.append(
            f"Answers of {model} were cut at the limit of tokens: {join_names(cut)}. Raise "
            "`max_new_tokens`, or set `stop`, before you use these results."
        )
    untemplated = [
        study.models[row["model"]] for row in accuracies if row["asked_without_template"]
    ]
    if untemplated:
        sentences.append(
            f"{join_names([*dict.fromkeys(untemplated)])} without a chat template: asked in plain "
            "text, in which a model that was trained on chats answers worse. Set `chat: false` if "
            "you mean that."
        )
    for verdict, advice in (("right", "harder"), ("wrong", "easier")):
        same = [row for row in accuracies if row["correct"] == row["n"] * (verdict == "right")]
        if tasks := [study.tasks[row["task"]] for row in same]:
            sentences.append(
                f"All answers of {model} on {join_names(tasks)} are {verdict}: nothing can be "
                f"compared; ask {advice} questions."
            )
    if few := [text for row in accuracies if (text := _too_few_labels(row, study))]:
        sentences.append(
            f"Too few labels of {model} to compare estimators or to guarantee: {join_names(few)}; "
            "label more answers."
        )
    return [Finding("problem", sentence, MAIN) for sentence in sentences]


def _too_few_labels(row: Mapping, study: StudyResults) -> str | None:
    """How few labels a task has, where they are too few for any result; None for one class."""
    task, n = study.tasks[row["task"]], round(study.options["calibration_share"] * row["n"])
    n_wrong = row["n"] - row["correct"]
    if not min(row["correct"], n_wrong):
        return None
    if n < LEAST_LABELS:
        return f"{n} of {row['n']} calibrate on {task}"
    n_rarer, verdict = min((row["correct"], "right"), (n_wrong, "wrong"))
    return f"{n_rarer} of {row['n']} {verdict} on {task}" if n_rarer < LEAST_OF_A_CLASS else None


def find_answers(study: StudyResults) -> list[Finding]:
    """How many answers are correct, whether some are missing, and whether labels are few."""
    rows, model = study.accuracies, study.models[study.studies["main"]["model"]]
    counts = [f"{row['correct']} of {row['n']} on {study.tasks[row['task']]}" for row in rows]
    findings = []
    if counts:
        findings.append(
            Finding("answers", f"{model} answers correctly: {join_names(counts)}.", MAIN)
        )
    findings += [Finding("missing", note, MAIN) for note in missing_answers(rows, study)]
    return findings + _find_few_labels(study)


def _find_few_labels(study: StudyResults) -> list[Finding]:
    """A warning where fits have fewer labels than advised, on the task that lacks most."""
    n_weights, share = study.options["weights"], study.options["calibration_share"]
    lacking = []
    for row in study.accuracies:
        rarer = min(row["correct"], row["n"] - row["correct"])
        needed, n = needed_answers(n_weights, rarer / row["n"]), round(share * row["n"])
        # Of one class alone, no number of labels is enough: that is a problem of its own.
        if n < needed < float("inf"):
            lacking.append((needed / max(n, 1), needed, n, row["n"], study.tasks[row["task"]]))
    if not lacking:
        return []
    _, needed, n, n_labels, task = max(lacking)
    sentence = (
        f"Labels are few: {n} of the {n_labels} labels of {task} calibrate, and {needed:.0f} are "
        f"advised for {count(n_weights, 'weight')}. Label about {needed / share:,.0f} answers, or "
        "compare scores that fit one weight."
    )
    return [Finding("caveat", sentence, MAIN)]
