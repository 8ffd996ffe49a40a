"""AUROC of TRACE where an answer's risk is moved to other positions (paper, appendix E.4)."""

import polars as pl

from trace_workflow.analyses.averages import average_repetitions
from trace_workflow.analyses.operator_variants import DEFAULT, PERMUTED
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.statistics.ranking_metrics import single_auroc

ORIGINAL, SHIFTED, DIFFERENCE = "original", "shifted", "difference"
AUROCS = {"split": pl.Int64, "setting": pl.String, "draw": pl.Int64, "value": pl.Float64}


def analysis(files: StudyFiles) -> pl.DataFrame:
    """`position_shift` of the pairs."""
    scores = files.read("operators", ["example_id", "setting", "draw", "score"])
    return position_shift(scores, files.labels(), files.splits())


def position_shift(
    operators: pl.DataFrame, answers: pl.DataFrame, splits: pl.DataFrame
) -> pl.DataFrame:
    """AUROC of TRACE, of its permuted draws, and their difference.

    Per task, and averaged over tasks (`task` None). `operators` holds `model`, `task`,
    `example_id`, `setting`, `draw` and `score`; `answers` and `splits` begin with the same three
    columns. Columns `task`, `quantity` ('original', 'shifted', 'difference': shifted minus
    original) and `over`, then those of `average_repetitions`. The mean is the same for both kinds
    of `over`: with 'split' the s.d. over splits is that of the mean of all draws, with 'draw' the
    s.d. over draws is that of the mean of all splits. An original has no draws.
    """
    aurocs = pl.concat(
        _aurocs(
            scores,
            answers.filter(model=model, task=task).select("example_id", "correct"),
            splits.filter(model=model, task=task),
        ).select(pl.lit(task).alias("task"), pl.all())
        for (model, task), scores in operators.group_by("model", "task")
    )
    original = aurocs.filter(setting=DEFAULT).select("task", "split", original="value")
    permuted = aurocs.filter(setting=PERMUTED).join(original, on=["task", "split"])
    keys = ["task", "split", "draw"]
    quantities = {SHIFTED: pl.col("value"), DIFFERENCE: pl.col("value") - pl.col("original")}
    shifted = permuted.select(*keys, **quantities).unpivot(index=keys, variable_name="quantity")
    original_rows = original.select(
        "task", pl.lit(ORIGINAL).alias("quantity"), "split", value="original"
    )
    by_split = pl.concat([original_rows, _means(shifted, "split")])
    values = {"split": by_split, "draw": _means(shifted, "draw")}
    return pl.concat(
        average_repetitions(rows, ["quantity"], over).with_columns(over=pl.lit(over))
        for over, rows in values.items()
    )


def _aurocs(scores: pl.DataFrame, answers: pl.DataFrame, splits: pl.DataFrame) -> pl.DataFrame:
    """AUROC of each setting and draw over each split's evaluation part."""
    labelled = scores.join(answers, on="example_id", how="left", validate="m:1")
    compared = labelled.filter(pl.col("setting").is_in([DEFAULT, PERMUTED]))
    evaluated = {
        split: part.filter(part="evaluation").select("example_id")
        for (split,), part in splits.group_by("split")
    }
    rows = []
    for (setting, draw), group in compared.group_by("setting", "draw"):
        for split, ids in evaluated.items():
            part = group.join(ids, on="example_id", how="semi").drop_nulls("score")
            value = single_auroc(part["score"].to_numpy(), part["correct"].to_numpy())
            rows.append((split, setting, draw, value))
    return pl.DataFrame(rows, schema=AUROCS, orient="row")


def _means(shifted: pl.DataFrame, over: str) -> pl.DataFrame:
    """The mean of each split over the draws, or of each draw over the splits."""
    repetition = {"split": "draw", "draw": "split"}[over]
    means = average_repetitions(shifted, ["quantity", over], repetition).drop_nulls("task")
    return means.select("task", "quantity", over, value="mean")
