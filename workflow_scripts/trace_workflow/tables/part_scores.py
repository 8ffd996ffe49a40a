"""How well estimators rank parts of answers, by the part's score and by the whole answer's."""

import polars as pl

from trace_workflow.analyses.part_scores import METRICS, PART, REVIEWED, WHOLE
from trace_workflow.tables.notes import method
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table

PRINTED = {
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
FIRST = ("model", "task", "estimator", "label", "n")
GROUPS = {PART: "The part's score", WHOLE: "The whole answer's score"}


def table(frames: Frames, settings: Settings) -> Table:
    """From `part_scores`: a row per estimator, section by section for each model and task."""
    found = settings.of_pairs(frames["part_scores"])
    ids = [entry.id for entry in settings.estimators]
    labels = {entry.id: entry.label for entry in settings.estimators}
    frame = found.select("model", "task", "estimator").unique()
    for kind in GROUPS:
        for metric in METRICS:
            own = found.filter(scored=kind, metric=metric)
            named = {f"{kind}_{metric}{end}": key for end, key in ENDS.items()}
            keys = ["model", "task", "estimator"]
            frame = frame.join(own.select(*keys, **named), on=keys, how="left")
    counts = found.filter(scored=PART, metric="auroc").select("model", "task", "estimator", "n")
    frame = (
        frame.join(counts, on=["model", "task", "estimator"])
        .with_columns(label=pl.col("estimator").replace_strict(labels))
        .sort(settings.in_order(), "task", pl.col("estimator").replace_strict(ids, range(len(ids))))
    )
    columns = [
        Column((f"{kind}_{metric}",), heading, GROUPS[kind], better="higher")
        for kind, headings in PRINTED.items()
        for metric, heading in headings.items()
    ]
    return Table(
        frame=frame.select(*FIRST, pl.exclude(FIRST)),
        columns=(method("part_scores", settings.estimators), *columns),
        section=pl.concat_str("model", "task", separator="/"),
        titles={f"{model}/{task}": settings.pair(model, task) for model, task in settings.pairs},
        notes=(
            "AUROC among all parts, among those of the same name and of the same answer. Lowest "
            "wrong: of the answers with right and wrong parts, the share whose lowest score is a "
            "wrong part's. Found at k %: the share of the wrong parts among the k % of all parts "
            f"with the lowest scores; the CSV has k = {', '.join(map(str, REVIEWED))} and all "
            "intervals. The whole answer's score is given to each of its parts, so it cannot rank "
            "those of one answer. Learned estimators are fitted on parts alone.",
        ),
    )
