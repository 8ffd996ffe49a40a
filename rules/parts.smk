# Tasks of parts of other tasks' answers, such as fields or lines: their traces are cut from those
# of the answers, and all that follows is as for any task.
# reads   traces/{model}/ of the other task, tasks/{task}.parquet, and the other task's rows
# writes  traces/{model}/{task}.arrow, work/answered/{model}/{task}.parquet

from tracecal.parts.spec import Parts


localrules:
    cut_parts,


rule cut_parts:
    input:
        traces=lambda wildcards: f"<results>/traces/{{model}}/{PARENTS[wildcards.task]}.arrow",
        questions=lambda wildcards: PLAN.path(
            QUESTIONS, model=wildcards.model, task=PARENTS[wildcards.task]
        ),
        task="<results>/tasks/{task}.parquet",
    output:
        **READ_TO,
    log:
        "<logs>/cut_parts/{model}/{task}.log",
    wildcard_constraints:
        task=one_of(PARENTS),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "parts/cut_parts.py",
            parts=lambda wildcards: TASKS[wildcards.task].parts.model_dump_json(by_alias=True),
            # Of the answers: what stands behind the end of one is in no part.
            stop=lambda wildcards: list(TASKS[PARENTS[wildcards.task]].stop),
        ),
    message:
        "Cutting {wildcards.task} from the answers of {wildcards.model}"
    script:
        "../workflow_scripts/parts/cut_parts.py"
