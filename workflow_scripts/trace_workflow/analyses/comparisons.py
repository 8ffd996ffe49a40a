"""TRACE+ against every baseline, with intervals that hold for all of them at once.

Max-t over the bootstrap (Romano and Wolf 2005): in each resample the largest deviation of any of
the differences from its observed value, in standard errors. Its quantile is the half-width of all
intervals, so that with the stated level none of them misses its difference. Each metric and scope
is a family by itself.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from trace_workflow.analyses.gains import SCOPE, SIGNS
from trace_workflow.analyses.improvements import differences, signed_values
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.io.files import read_parquet
from tracecal.statistics.resampling import RESAMPLES

COMPARISONS = {
    **dict.fromkeys((*SCOPE, "baseline"), pl.String),
    **dict.fromkeys(("difference", "low", "high", "level"), pl.Float64),
    "resamples": pl.Int64,
}


def analysis(
    files: StudyFiles, baselines: Sequence[str], studies: Mapping[str, Mapping], level: float
) -> pl.DataFrame:
    """Compare TRACE+ with each baseline, from the resamples of all pairs (see `comparisons`)."""
    resampled = pl.concat(read_parquet(path, list(RESAMPLES)) for path in files["resamples"])
    return comparisons(resampled, baselines, studies, level)


def comparisons(
    resampled: pl.DataFrame, baselines: Sequence[str], studies: Mapping[str, Mapping], level: float
) -> pl.DataFrame:
    """Compute the COMPARISONS, a row per metric, scope and baseline with a defined difference.

    `resampled` holds the rows of `resample_metrics` of all pairs. A positive `difference` means
    that TRACE+ is better.
    """
    rows = []
    for metric in resampled["metric"].unique().sort():
        by_pair = signed_values(resampled.filter(metric=metric), SIGNS[metric])
        families: dict[tuple, dict[str, np.ndarray]] = {}
        for baseline in baselines:
            for scope, values in differences(by_pair, studies, baseline).items():
                if len(values) > 1 and not np.isnan(values[0]):
                    families.setdefault(scope, {})[baseline] = values
        for scope, family in families.items():
            values = np.array(list(family.values()))
            observed, half_widths, n_resamples = joint_intervals(values, level)
            rows += [
                (*scope, metric, baseline, value, value - half, value + half, level, n_resamples)
                for baseline, value, half in zip(family, observed, half_widths, strict=True)
            ]
    return pl.DataFrame(rows, schema=COMPARISONS, orient="row").sort(*SCOPE, "baseline")


def joint_intervals(values: np.ndarray, level: float) -> tuple[list[float], list[float], int]:
    """The observed differences, the half-widths of their intervals, and how many resamples count.

    `values` [k, 1 + resamples] are k differences, the observed ones first; resamples in which one
    of them is undefined are left out.
    """
    observed = values[:, :1]
    resampled = values[:, 1:][:, ~np.isnan(values).any(axis=0)[1:]]
    errors = resampled.std(axis=1, keepdims=True)
    scaled = np.abs(resampled - observed) / np.where(errors > 0, errors, np.inf)
    quantile = np.quantile(scaled.max(axis=0), level) if resampled.size else np.nan
    return observed[:, 0].tolist(), (quantile * errors[:, 0]).tolist(), resampled.shape[1]
