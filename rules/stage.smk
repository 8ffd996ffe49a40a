# Staging: downloads from the Hugging Face hub, where there is internet. Every other step runs with
# the hub offline, and no change outside this file downloads anything again.
# reads   the config's `hub` sources
# writes  models/{model}/ and work/revisions/{model}.txt (the commit) of hub models,
#         work/rows/{task}/{rows}.parquet and .txt (the commit), `rows` a split[-language],
#         work/needs.tsv (only for the target `needs`)

STAGED = sorted(slug for slug, model in MODELS.items() if model.source.hub)
STAGED_ENCODERS = sorted(name for name, source in ENCODER_SOURCES.items() if source.hub)
# By task and the name of a part of its rows: where that part comes from.
STAGED_ROWS = {
    slug: {
        part.name: {
            "hub": task.source.hub,
            "config": task.source.config and part.fill(task.source.config),
            "revision": task.source.revision,
            "split": part.split,
        }
        for part in task.pieces()
    }
    for slug, task in sorted(TASKS.items())
    if task.source.hub
}
# The studies' models that are not made here, and what decides how much they need.
WEIGHTS = [
    MODELS[slug].model_dump(include={"slug", "dtype", "batch_size"})
    | MODELS[slug].source.model_dump(include={"hub", "revision", "path"})
    | {"tasks": [task for model, task in PAIRS if model == slug]}
    for slug in sorted({model for model, _ in PAIRS})
    if MODELS[slug].source.hub or MODELS[slug].source.path
]
# Which settings say where a model or encoder is downloaded from.
HUB = {"hub", "revision"}


localrules:
    needs,
    stage,
    stage_encoder,
    stage_model,
    stage_rows,


# Whatever the studies need from the hub, and nothing else.
rule stage:
    input:
        [f"<results>/models/{model}" for model in STAGED if model in STUDIED],
        [f"<results>/encoders/{encoder}" for encoder in STAGED_ENCODERS],
        [
            f"<results>/work/rows/{task}/{rows}.parquet"
            for task, parts in STAGED_ROWS.items()
            for rows in parts
            if task in STUDIED
        ],


# The disk space and GPU memory that the models need, before anything is downloaded.
rule needs:
    output:
        "<results>/work/needs.tsv",
    log:
        "<logs>/needs.log",
    conda:
        "../envs/inference.yaml"
    params:
        **settings(
            "stage/list_needs.py",
            models=WEIGHTS,
            tasks={task: TASKS[task].part(Asking) for task in sorted(TASKS)},
        ),
    message:
        "Listing the disk space and GPU memory that the models need"
    script:
        "../workflow_scripts/stage/list_needs.py"


rule stage_model:
    output:
        model=directory("<results>/models/{model}"),
        revision="<results>/work/revisions/{model}.txt",
    log:
        "<logs>/stage_model/{model}.log",
    wildcard_constraints:
        model=one_of(STAGED),
    priority: 10
    conda:
        "../envs/inference.yaml"
    params:
        **settings(
            "stage/stage_model.py",
            source=lambda wildcards: MODELS[wildcards.model].source.model_dump(include=HUB),
        ),
    message:
        "Staging {wildcards.model}"
    script:
        "../workflow_scripts/stage/stage_model.py"


use rule stage_model as stage_encoder with:
    output:
        model=directory("<results>/encoders/{encoder}"),
        revision="<results>/work/revisions/encoders/{encoder}.txt",
    log:
        "<logs>/stage_encoder/{encoder}.log",
    wildcard_constraints:
        encoder=one_of(STAGED_ENCODERS),
    params:
        **settings(
            "stage/stage_model.py",
            source=lambda wildcards: ENCODER_SOURCES[wildcards.encoder].model_dump(include=HUB),
        ),
    message:
        "Staging the encoder of {wildcards.encoder}"


rule stage_rows:
    output:
        rows="<results>/work/rows/{task}/{rows}.parquet",
        revision="<results>/work/rows/{task}/{rows}.txt",
    log:
        "<logs>/stage_rows/{task}/{rows}.log",
    wildcard_constraints:
        task=one_of(STAGED_ROWS),
        rows=one_of(sorted({rows for parts in STAGED_ROWS.values() for rows in parts})),
    conda:
        "../envs/inference.yaml"
    params:
        **settings(
            "stage/stage_rows.py",
            source=lambda wildcards: STAGED_ROWS[wildcards.task][wildcards.rows],
        ),
    message:
        "Staging the rows {wildcards.rows} of {wildcards.task}"
    script:
        "../workflow_scripts/stage/stage_rows.py"
