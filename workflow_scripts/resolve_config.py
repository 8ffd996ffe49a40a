"""Write the resolved configuration beside the results."""

from trace_job import job
from trace_workflow.config.run import load_run
from trace_workflow.jobs.code_hash import SCRIPTS
from tracecal.io.regular_files import write_text

with job(snakemake):
    run = load_run(snakemake.config, "config", SCRIPTS.parent)
    write_text(run.resolved, snakemake.output[0])
