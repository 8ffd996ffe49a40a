"""How well estimators rank parts of answers, by the part's score and by the whole answer's."""

import polars as pl

from trace_workflow.analyses.part_scores import METRICS, PART, REVIEWED, WHOLE
from trace_workflow.tables.marks import estimator_column
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import Column, Table

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


def table(study: StudyResults) -> Table:
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
