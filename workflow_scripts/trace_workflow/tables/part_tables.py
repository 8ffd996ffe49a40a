"""Tables of parts of answers: where an answer is wrong, and which of its parts.

`localisation` has how often the risk of an answer lies in a wrong part, beside chance, and
`part_scores` how well estimators rank parts, by the part's score and by the whole answer's.
"""

import polars as pl

from trace_workflow.analyses.localisation import CHANCE, COUNTS, POINTERS
from trace_workflow.analyses.part_scores import METRICS, PART, REVIEWED, WHOLE
from trace_workflow.tables.marks import estimator_column
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import Column, Table
from trace_workflow.tables.wording import note

POINTER_NAMES = {
    "window": "Window of peak risk",
    "max_surprisal": "Token of highest surprisal",
    "max_entropy": "Token of highest entropy",
    "random_window": "Chance: any window",
    "random_token": "Chance: any token",
    "random_part": "Chance: any part",
    "failing_name": "The part that usually fails",
}
MISSING_PARTS = {"unanswered": "are left out", "wrong": "count as wrong in the accuracy"}
HEADINGS = {
    PART: {
        "auroc": "All",
        "auroc_same_name": "Same name",
        "auroc_same_answer": "Same answer",
        "lowest_wrong": "Lowest wrong",
        "found_10": "Found at 10 %",
        "found_20": "Found at 20 %",
    },
    WHOLE: {"auroc": "All", "auroc_same_name": "Same name", "found_20": "Found at 20 %"},
}
ENDS = {"": "value", "_low": "low", "_high": "high"}
KEYS = ("model", "task", "estimator")
FIRST = (*KEYS, "label", "n")
SCORED = {PART: "The part's score", WHOLE: "The whole answer's score"}


def localisation(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per pointer, the best first, pair by pair."""
    order = [*POINTERS, *CHANCE]
    rank = pl.col("pointer").replace_strict(order, range(len(order)))
    label = pl.col("pointer").replace_strict(POINTER_NAMES)
    rows = study.in_pairs(study.frames["localisation"]).with_columns(label=label)
    frame = rows.sort(
        *(study.model_order, "task", "value", rank),
        descending=[False, False, True, False],
        nulls_last=True,
    )
    section, titles = study.pair_sections
    level = frame["level"].max()
    return Table(
        frame=frame.select(
            *("model", "task", "pointer", "label", "value", "low", "high", "pointed"), *COUNTS
        ),
        columns=(
            Column(("label",), "Points at", align="left"),
            Column(("value",), "In a wrong part", better="higher"),
            Column(("low", "high"), f"{100 * (level or 0):g} % interval", joint=" to "),
            Column(("pointed",), "Answers"),
        ),
        section=section,
        titles=titles,
        notes=(
            "The share of answers with right and wrong parts in which the pointer lies in a wrong "
            "part; a token or window outside all parts is no hit.",
            *_count_parts(frame, study),
        ),
    )


def _count_parts(frame: pl.DataFrame, study: StudyResults) -> list[str]:
    """A note on the numbers of answers and parts, and on missing parts."""
    missing = study.options["missing"]
    sentences = [
        f"{study.pair_label(row['model'], row['task'])} {row['answers']} answers, "
        f"{row['without_parts']} without parts in the requested form and {row['mixed']} with right "
        f"and wrong parts; {row['wrong']} of {row['parts']} parts are wrong, {row['missing']} more "
        f"are missing; missing parts {MISSING_PARTS[missing[row['task']]]}"
        for row in frame.unique(["model", "task"], maintain_order=True).to_dicts()
    ]
    return note("Counted", sentences)


def part_scores(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per estimator, section by section for each pair."""
    analysis = study.in_pairs(study.frames["part_scores"])
    frame = analysis.select(KEYS).unique()
    for scored in SCORED:
        for metric in METRICS:
            names = {f"{scored}_{metric}{end}": key for end, key in ENDS.items()}
            values = analysis.filter(scored=scored, metric=metric).select(*KEYS, **names)
            frame = frame.join(values, on=KEYS, how="left")
    counts = analysis.filter(scored=PART, metric="auroc").select(*KEYS, "n")
    order = pl.col("estimator").replace_strict(list(study.labels), range(len(study.labels)))
    frame = (
        frame.join(counts, on=KEYS)
        .with_columns(label=pl.col("estimator").replace_strict(study.labels))
        .sort(study.model_order, "task", order)
    )
    columns = [
        Column((f"{scored}_{metric}",), heading, SCORED[scored], better="higher")
        for scored, headings in HEADINGS.items()
        for metric, heading in headings.items()
    ]
    section, titles = study.pair_sections
    return Table(
        frame=frame.select(*FIRST, pl.exclude(FIRST)),
        columns=(estimator_column("part_scores", study.estimators), *columns),
        section=section,
        titles=titles,
        notes=(
            "AUROC among all parts, among parts of the same name, and among parts of the same "
            "answer. Lowest wrong: the share of answers with right and wrong parts whose lowest "
            "score is a wrong part's. Found at k %: the share of all wrong parts among the k % of "
            f"parts with the lowest scores; the CSV has k = {', '.join(map(str, REVIEWED))} and "
            "all intervals. The score of a whole answer is the same for its parts and cannot rank "
            "them. Learned estimators are fitted on parts alone.",
        ),
    )
