# The demo data: public facts as tasks, and the models and encoders that are trained on them.
# reads   the config's `world`, `models`, `encoders` and `seed`
# writes  world/corpus.parquet, world/discussions.parquet, world/<family>.parquet, world/tokenizer/,
#         models/{model}/ and encoders/{encoder}/ (trained ones)

from trace_workflow.config.models import ASKED_ALONE
from trace_workflow.config.models import Family
from typing import get_args

TRAINED = sorted(slug for slug, model in MODELS.items() if model.source.train)

# The part of the demo data that each encoder is trained on
LESSONS = {"similarity": "corpus", "importance": "discussions", "entailment": "discussions"}

TRAINED_ENCODERS = {
    name for name, encoder in CONFIG.encoders if encoder and encoder.source and encoder.source.train
}

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
            "make_world.py",
            world=lambda wildcards: WORLD,
        ),
    message:
        "Making the demo data from public facts"
    script:
        "../workflow_scripts/make_world.py"


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
            "train_tokenizer.py",
            vocabulary=CONFIG.world.vocabulary if CONFIG.world else None,
        ),
    message:
        "Training the tokenizer of the embedded models"
    script:
        "../workflow_scripts/train_tokenizer.py"


rule train_model:
    input:
        corpus="<results>/world/corpus.parquet",
        tokenizer="<results>/world/tokenizer",
    output:
        model=directory("<results>/models/{model}"),
    log:
        "<logs>/train_model/{model}.log",
    wildcard_constraints:
        model=one_of(TRAINED),
    priority: 10
    conda:
        "../envs/inference.yaml"
    # One thread each: models train side by side, and two threads on one model are slower.
    threads: 1
    params:
        **settings(
            "train_model.py",
            training=lambda wildcards: MODELS[wildcards.model].source.train.model_dump()
            | {"seed": CONFIG.seed},
        ),
    message:
        "Training {wildcards.model}"
    script:
        "../workflow_scripts/train_model.py"


rule train_encoder:
    input:
        # Replies phrase by phrase; the sentence encoder is trained on questions and answers.
        taught=lambda wildcards: f"<results>/world/{LESSONS[wildcards.encoder]}.parquet",
        tokenizer="<results>/world/tokenizer",
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/train_encoder/{encoder}.log",
    wildcard_constraints:
        encoder=one_of(TRAINED_ENCODERS),
    priority: 10
    conda:
        "../envs/inference.yaml"
    threads: 1
    params:
        **settings(
            "train_encoder.py",
            loads=lambda wildcards: [f"trace_workflow.demo.{wildcards.encoder}"],
            training=lambda wildcards: ENCODER_SOURCES[wildcards.encoder].train.model_dump()
            | {"seed": CONFIG.seed},
        ),
    message:
        "Training the encoder of {wildcards.encoder}"
    script:
        "../workflow_scripts/train_encoder.py"
