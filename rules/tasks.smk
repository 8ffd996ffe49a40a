# Tasks: benchmark rows in one table each, and their random splits.
# reads   the task files, local data files, world/<family>.parquet
# writes  tasks/{task}.parquet, splits/{task}.parquet


localrules:
    draw_splits,
    prepare_task,


rule prepare_task:
    input:
        unpack(task_rows),
    output:
        "<results>/tasks/{task}.parquet",
    log:
        "<logs>/prepare_task/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("prepare_task.py"),
        spec=lambda wildcards: TASKS[wildcards.task].part(Rows),
        seed=CONFIG.seed,
    message:
        "Preparing task {wildcards.task}"
    script:
        "../workflow_scripts/prepare_task.py"


rule draw_splits:
    input:
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/splits/{task}.parquet",
    log:
        "<logs>/draw_splits/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("draw_splits.py"),
        seed=CONFIG.seed,
        splits=CONFIG.splits.count,
        share=CONFIG.splits.calibration_share,
    message:
        "Drawing the splits of {wildcards.task}"
    script:
        "../workflow_scripts/draw_splits.py"
