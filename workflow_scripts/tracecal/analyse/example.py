"""The answer that stands as an example where a figure shows one."""

import polars as pl


def typical_peak(answers: pl.DataFrame) -> dict[str, object]:
    """The row of the most pronounced peak among answers of median length.

    `answers`, at least one, holds `task`, `example_id`, `length`, `window_entropy`,
    `mean_entropy` and `legible`; those that are not legible are passed over while there are
    others. The peak is M_H^(4) - mean H, the spike gap; of equal ones the first by task and id.
    """
    legible = answers.filter("legible")
    candidates = answers if legible.is_empty() else legible
    median = candidates["length"].quantile(0.5, "lower")
    gap = pl.col("window_entropy") - pl.col("mean_entropy")
    return candidates.filter(length=median).sort(-gap, "task", "example_id").row(0, named=True)
