"""Make the demo data from public facts: its corpus, and the questions of every task family."""

from trace_workflow.demo.corpus import make_world
from trace_workflow.jobs.job import job
from tracecal.io.files import write_parquet
from tracecal.io.log import LOGGER

with job(snakemake):
    world = make_world(**snakemake.params.world)
    for family, examples in world.examples.items():
        write_parquet(examples, snakemake.output[family])
    write_parquet(world.corpus, snakemake.output.corpus)
    write_parquet(world.discussions, snakemake.output.discussions)
    LOGGER.info("%d corpus examples, %d replies", world.corpus.height, world.discussions.height)
