# The embedded world, made from a seed: what the demo's models learn and are asked.
# reads   the config's `world` and `seed`
# writes  world/corpus.parquet, world/discussions.parquet, world/<family>.parquet, world/tokenizer/

WORLD_FAMILIES = ["arithmetic", "closed_book", "extractive", "misconceptions"]


rule make_world:
    output:
        **{family: f"<results>/world/{family}.parquet" for family in WORLD_FAMILIES},
        corpus="<results>/world/corpus.parquet",
        discussions="<results>/world/discussions.parquet",
    log:
        "<logs>/make_world.log",
    benchmark:
        "<benchmarks>/make_world.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("make_world.py"),
        world=world_settings,
    message:
        "Making the embedded world"
    script:
        "../workflow_scripts/make_world.py"


rule train_tokenizer:
    input:
        corpus="<results>/world/corpus.parquet",
    output:
        tokenizer=directory("<results>/world/tokenizer"),
    log:
        "<logs>/train_tokenizer.log",
    benchmark:
        "<benchmarks>/train_tokenizer.tsv"
    conda:
        "../envs/inference.yaml"
    params:
        code=code("train_tokenizer.py"),
        vocabulary=CONFIG.world.vocabulary if CONFIG.world else None,
    message:
        "Training the tokenizer of the embedded models"
    script:
        "../workflow_scripts/train_tokenizer.py"
