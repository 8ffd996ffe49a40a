"""The answer that figures show as an example."""

import polars as pl

CONFIDENT = 0.5  # mean probability of a token, from which an answer counts as confident


def confident_error(answers: pl.DataFrame) -> dict[str, object]:
    """The row of the wrong answer that is confident on average and has the highest peak.

    `answers`, at least one, holds `task`, `example_id`, `correct`, `mean_prob` (exp of the mean log
    probability), `window_entropy`, `mean_entropy` and `legible`. An answer that is right, unsure or
    not legible is chosen only where there is no other. The peak is M_H^(4) - mean H, the spike gap;
    of equal ones the first by task and id.
    """
    for kind in (pl.col("legible"), ~pl.col("correct"), pl.col("mean_prob") >= CONFIDENT):
        preferred = answers.filter(kind)
        answers = answers if preferred.is_empty() else preferred
    gap = pl.col("window_entropy") - pl.col("mean_entropy")
    return answers.sort(-gap, "task", "example_id").row(0, named=True)
