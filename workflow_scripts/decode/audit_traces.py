"""Prove a sample of the traces by teacher-forced replay; stop the run where they do not hold."""

from tracecal.decode.audit import audit_sample, audit_traces
from tracecal.decode.model import load_model
from tracecal.decode.traces import read_traces
from tracecal.job import job
from tracecal.storage.files import write_json

with job(snakemake):
    params = snakemake.params
    model = load_model(
        snakemake.input.model, **params.loading, device_map=snakemake.resources.device_map
    )
    sample = audit_sample(read_traces(snakemake.input.traces), params.answers)
    report = audit_traces(model, sample, params.tolerance)
    write_json(report | {"dtype": params.loading["dtype"]}, snakemake.output[0])
