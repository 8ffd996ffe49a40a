# The world of public facts: what the demo's models are asked, and its trained ones learn.
# reads   the config's `world` and `seed`
# writes  world/corpus.parquet, world/discussions.parquet, world/<family>.parquet, world/tokenizer/

from typing import get_args

from tracecal.config.sources import ASKED_ALONE, Family

WORLD_FAMILIES = (*get_args(Family), ASKED_ALONE)
WORLD = CONFIG.world and {
    "seed": CONFIG.seed,
    "size": CONFIG.world.corpus_examples,
    "evaluation": CONFIG.world.evaluation_rows,
    "training": CONFIG.world.training_rows,
}


rule make_world:
    output:
        **{family: f"<results>/world/{family}.parquet" for family in WORLD_FAMILIES},
        corpus="<results>/world/corpus.parquet",
        discussions="<results>/world/discussions.parquet",
    log:
        "<logs>/make_world.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "world/make_world.py",
            world=lambda wildcards: WORLD,
        ),
    message:
        "Making the world of public facts"
    script:
        "../workflow_scripts/world/make_world.py"


rule train_tokenizer:
    input:
        corpus="<results>/world/corpus.parquet",
    output:
        tokenizer=directory("<results>/world/tokenizer"),
    log:
        "<logs>/train_tokenizer.log",
    conda:
        "../envs/inference.yaml"
    params:
        **settings(
            "world/train_tokenizer.py",
            vocabulary=CONFIG.world.vocabulary if CONFIG.world else None,
        ),
    message:
        "Training the tokenizer of the embedded models"
    script:
        "../workflow_scripts/world/train_tokenizer.py"
