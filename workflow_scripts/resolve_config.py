"""Write the resolved configuration beside the results."""

from pathlib import Path

from trace_workflow.config.run import load_config, load_tasks, resolved_yaml
from trace_workflow.config.selection import choose
from trace_workflow.jobs.job import job
from tracecal.io.files import write_text

with job(snakemake):
    config = load_config(snakemake.config, "config")
    tasks = load_tasks(config, Path(__file__).resolve().parents[1])
    chosen, _ = choose(config, tasks)
    write_text(
        resolved_yaml(config, tasks, [estimator.id for estimator in chosen]), snakemake.output[0]
    )
