"""Make the embedded world: its corpus, and the questions of every task family."""

from tracecal.files import write_parquet
from tracecal.job import job
from tracecal.progress import LOGGER
from tracecal.world.corpus import make_world

with job(snakemake.log[0]):
    world = make_world(**snakemake.params.world)
    for family, examples in world.examples.items():
        write_parquet(examples, snakemake.output[family])
    write_parquet(world.corpus, snakemake.output.corpus)
    write_parquet(world.discussions, snakemake.output.discussions)
    LOGGER.info("%d corpus examples, %d replies", world.corpus.height, world.discussions.height)
