"""Audit a sample of the traces by teacher-forced replay; stop the run where they deviate."""

from trace_job import job
from trace_workflow.models.audit import audit_sample, audit_traces
from trace_workflow.models.parallel import on_model
from tracecal.io.files import write_json
from tracecal.io.traces import read_traces

with job(snakemake):
    paths, params = snakemake.input, snakemake.params
    sample = audit_sample(read_traces(paths.traces), params.answers)
    gpus = snakemake.resources.gpu
    report = on_model(audit_traces, paths.model, params.loading, gpus, sample, params.tolerance)
    write_json(report | {"dtype": params.loading["dtype"]}, snakemake.output[0])
