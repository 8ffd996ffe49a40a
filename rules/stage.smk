# Staging: everything that comes from the Hugging Face hub, fetched where there is internet.
# Every other step runs with the hub offline, and no change outside this file restages anything.
# reads   the config's `hub` sources
# writes  models/{model}/ and work/revisions/{model}.txt (the commit) of hub models,
#         work/rows/{task}/{rows}.parquet and .txt (the commit), `rows` a split[-language],
#         work/needs.tsv (only when asked for: the target `estimate`)

STAGED = sorted(slug for slug, model in MODELS.items() if model.source.hub)
STAGED_ENCODERS = sorted(name for name, source in ENCODER_SOURCES.items() if source.hub)
STAGED_ROWS = {
    task: {part.name: part for part in TASKS[task].parts()}
    for task in sorted(TASKS)
    if TASKS[task].source.hub
}
NEEDED = {name for pair in PAIRS for name in pair}


localrules:
    estimate,
    stage,
    stage_encoder,
    stage_model,
    stage_rows,


# Everything that the studies need from the hub, and nothing else.
rule stage:
    input:
        [f"<results>/models/{model}" for model in STAGED if model in NEEDED],
        [f"<results>/encoders/{encoder}" for encoder in STAGED_ENCODERS],
        [
            f"<results>/work/rows/{task}/{rows}.parquet"
            for task, parts in STAGED_ROWS.items()
            for rows in parts
            if task in NEEDED
        ],


# What the models need of disk and GPU memory, before anything is fetched.
rule estimate:
    output:
        "<results>/work/needs.tsv",
    log:
        "<logs>/estimate.log",
    conda:
        "../envs/inference.yaml"
    params:
        code=code("estimate_needs.py"),
        models=weighed_models(),
        tasks={task: TASKS[task].part(Asking) for task in sorted(TASKS)},
    message:
        "Estimating what the models need"
    script:
        "../workflow_scripts/estimate_needs.py"


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
        code=code("stage_model.py"),
        source=hub_model,
    message:
        "Staging {wildcards.model}"
    script:
        "../workflow_scripts/stage_model.py"


rule stage_encoder:
    output:
        model=directory("<results>/encoders/{encoder}"),
        revision="<results>/work/revisions/encoders/{encoder}.txt",
    log:
        "<logs>/stage_encoder/{encoder}.log",
    wildcard_constraints:
        encoder=one_of(STAGED_ENCODERS),
    conda:
        "../envs/inference.yaml"
    params:
        code=code("stage_model.py"),
        source=hub_encoder,
    message:
        "Staging the encoder of {wildcards.encoder}"
    script:
        "../workflow_scripts/stage_model.py"


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
        code=code("stage_rows.py"),
        source=hub_rows,
    message:
        "Staging the rows {wildcards.rows} of {wildcards.task}"
    script:
        "../workflow_scripts/stage_rows.py"
