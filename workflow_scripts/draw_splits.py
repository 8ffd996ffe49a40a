"""Draw the random calibration/evaluation splits of a task."""

from trace_job import job
from tracecal.io.files import read_parquet, write_parquet
from tracecal.io.log import LOGGER
from tracecal.statistics.splits import calibration_sizes, make_splits

with job(snakemake):
    task, params = snakemake.wildcards.task, snakemake.params
    rows = read_parquet(snakemake.input.task, ["example_id", "group_id", "role"])
    examples = rows.filter(role="evaluation").drop("role")
    splits = make_splits(examples, params.task, params.seed, params.splits, params.share)
    LOGGER.info(
        "%d to %d of %d examples of %s calibrate (%g requested), in whole groups (%d in all)",
        *calibration_sizes(splits),
        examples.height,
        task,
        params.share * examples.height,
        examples["group_id"].n_unique(),
    )
    write_parquet(splits, snakemake.output[0])
