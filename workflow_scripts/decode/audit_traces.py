"""Audit a sample of the traces by teacher-forced replay; stop the run where they deviate."""

from tracecal.decode.audit import audit_sample, audit_traces
from tracecal.decode.parallel import on_model
from tracecal.decode.traces import read_traces
from tracecal.jobs.job import job
from tracecal.storage.files import write_json

with job(snakemake):
    paths, params = snakemake.input, snakemake.params
    arguments = audit_sample(read_traces(paths.traces), params.answers), params.tolerance
    gpus = snakemake.resources.gpu
    report = on_model(audit_traces, paths.model, params.loading, gpus, *arguments)
    write_json(report | {"dtype": params.loading["dtype"]}, snakemake.output[0])
