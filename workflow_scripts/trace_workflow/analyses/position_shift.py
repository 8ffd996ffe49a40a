"""AUROC of TRACE where an answer's risk is moved to other positions (paper, appendix E.4)."""

import polars as pl

from trace_workflow.analyses.averages import repeated
from trace_workflow.analyses.operator_variants import DEFAULT, PERMUTED
from trace_workflow.analyses.study_files import Pairs, Paths, read_labels, read_pairs, read_splits
from tracecal.calibration.ranking import single_auroc

ORIGINAL, SHIFTED, DIFFERENCE = "original", "shifted", "difference"
MEASURED = {
    "split": pl.Int64,
    "setting": pl.String,
    "draw": pl.Int64,
    "value": pl.Float64,
}


def analysis(operators: Paths, labels: Paths, splits: Paths, pairs: Pairs) -> pl.DataFrame:
    """`position_shift` from the files of `pairs`."""
    scores = read_pairs(operators, pairs, ["example_id", "setting", "draw", "score"])
    return position_shift(scores, read_labels(labels, pairs), read_splits(splits, pairs))


def position_shift(
    operators: pl.DataFrame, answers: pl.DataFrame, splits: pl.DataFrame
) -> pl.DataFrame:
    """AUROC of TRACE, of its permuted draws, and their difference.

    Per task, and averaged over tasks (`task` null). `operators` holds `model`, `task`,
    `example_id`, `setting`, `draw` and `score`; `answers` and `splits` begin with the same three
    columns. Columns `task`, `quantity` ('original', 'shifted', 'difference': shifted minus
    original) and `over`, then those of `repeated`. The mean is the same for both kinds of `over`:
    with 'split' the s.d. over splits is that of the mean of all draws, with 'draw' the s.d. over
    draws is that of the mean of all splits. An original has no draws.
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
    drawn = aurocs.filter(setting=PERMUTED).join(original, on=["task", "split"])
    keys = ["task", "split", "draw"]
    quantities = {SHIFTED: pl.col("value"), DIFFERENCE: pl.col("value") - pl.col("original")}
    shifted = drawn.select(*keys, **quantities).unpivot(index=keys, variable_name="quantity")
    original_rows = original.select(
        "task", pl.lit(ORIGINAL).alias("quantity"), "split", value="original"
    )
    by_split = pl.concat([original_rows, _means(shifted, "split")])
    summaries = {"split": by_split, "draw": _means(shifted, "draw")}
    return pl.concat(
        repeated(values, ["quantity"], over).with_columns(over=pl.lit(over))
        for over, values in summaries.items()
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
    for (setting, draw), scored in compared.group_by("setting", "draw"):
        for split, ids in evaluated.items():
            part = scored.join(ids, on="example_id", how="semi").drop_nulls("score")
            value = single_auroc(part["score"].to_numpy(), part["correct"].to_numpy())
            rows.append((split, setting, draw, value))
    return pl.DataFrame(rows, schema=MEASURED, orient="row")


def _means(shifted: pl.DataFrame, over: str) -> pl.DataFrame:
    """The mean of each split over the draws, or of each draw over the splits."""
    other = {"split": "draw", "draw": "split"}[over]
    means = repeated(shifted, ["quantity", over], other).drop_nulls("task")
    return means.select("task", "quantity", over, value="mean")
