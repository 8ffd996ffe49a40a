# Model folders, trained here or linked; those of the hub are staged (stage.smk).
# reads   the config's `models`, world/corpus.parquet, world/tokenizer/
# writes  models/{model}/, work/revisions/{model}.txt

TRAINED = sorted(slug for slug, model in MODELS.items() if model.source.train)
LINKED = sorted(slug for slug, model in MODELS.items() if model.source.path)


localrules:
    link_model,


rule train_model:
    input:
        corpus="<results>/world/corpus.parquet",
        tokenizer="<results>/world/tokenizer",
    output:
        model=directory("<results>/models/{model}"),
    log:
        "<logs>/train_model/{model}.log",
    benchmark:
        "<benchmarks>/train_model/{model}.tsv"
    wildcard_constraints:
        model=one_of(TRAINED),
    priority: 10
    conda:
        "../envs/inference.yaml"
    # One thread each: models train side by side, and two threads on one model are slower.
    threads: 1
    params:
        code=code("train_model.py"),
        training=training_settings,
    message:
        "Training {wildcards.model}"
    script:
        "../workflow_scripts/train_model.py"


rule link_model:
    output:
        directory("<results>/models/{model}"),
    log:
        "<logs>/link_model/{model}.log",
    wildcard_constraints:
        model=one_of(LINKED),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("link_model.py"),
        path=lambda wildcards: MODELS[wildcards.model].source.path,
    message:
        "Linking {wildcards.model}"
    script:
        "../workflow_scripts/link_model.py"


rule fingerprint_model:
    input:
        model="<results>/models/{model}",
    output:
        "<results>/work/revisions/{model}.txt",
    log:
        "<logs>/fingerprint_model/{model}.log",
    wildcard_constraints:
        model=one_of(TRAINED + LINKED),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("fingerprint_model.py"),
    message:
        "Fingerprinting the weights of {wildcards.model}"
    script:
        "../workflow_scripts/fingerprint_model.py"
