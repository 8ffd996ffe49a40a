"""Gather the thresholds that promise an error rate, from every pair's calibrators."""

from tracecal.analyse.risk_coverage import risk_coverage
from tracecal.job import job
from tracecal.storage.files import read_json, write_parquet

with job(snakemake):
    calibrators = map(read_json, snakemake.input)
    controls = [entry["trace_plus"]["risk_control"] for entry in calibrators]
    write_parquet(risk_coverage(controls, snakemake.params.pairs), snakemake.output[0])
