"""Draw the robustness panels as PDF and SVG."""

from tracecal.analyse.reliability_selective import BINS, CURVE
from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render import style
from tracecal.render.averages import COLUMNS, Entry
from tracecal.render.robustness import robustness_panels

with job(snakemake.log[0]):
    inputs = snakemake.input
    figure = robustness_panels(
        read_parquet(inputs.sizes, [*COLUMNS, "calibration_share"]),
        read_parquet(inputs.bins, list(BINS)),
        read_parquet(inputs.curve, list(CURVE)),
        read_parquet(inputs.lengths, [*COLUMNS, "stratum"]),
        [Entry(*fields) for fields in snakemake.params.estimators],
        snakemake.params.study,
    )
    style.save(figure, snakemake.output.pdf, snakemake.output.svg)
