# Correctness: what each answer says, and whether it is right.
# reads   traces/{model}/{task}.arrow, tasks/{task}.parquet
# writes  labels/{model}/{task}.parquet, analyses/accuracy.parquet


localrules:
    count_accuracy,
    label_answers,


rule label_answers:
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/labels/{model}/{task}.parquet",
    log:
        "<logs>/label_answers/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("label_answers.py"),
        spec=lambda wildcards: TASKS[wildcards.task].part(Judging),
    message:
        "Judging the answers of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/label_answers.py"


rule count_accuracy:
    input:
        labels=pairs("<results>/labels/{model}/{task}.parquet"),
        tasks=pairs("<results>/tasks/{task}.parquet"),
    output:
        "<results>/analyses/accuracy.parquet",
    log:
        "<logs>/count_accuracy.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("count_accuracy.py"),
    message:
        "Counting right answers"
    script:
        "../workflow_scripts/count_accuracy.py"
