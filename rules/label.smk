# Correctness: the prediction that each answer states, and whether it is correct.
#
# label_answers  traces/{model}/{task}.arrow, tasks/{task}.parquet -> labels/{model}/{task}.parquet
# accuracy       labels/, traces/ and rows of all pairs -> analyses/accuracy.parquet, analyses/language_accuracy.parquet

from trace_workflow.config.custom import custom_code
from trace_workflow.config.correctness import CorrectnessSettings


rule label_answers:
    """Judge whether each answer is correct."""
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/labels/{model}/{task}.parquet",
    log:
        "<logs>/label_answers/{model}/{task}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "label_answers.py",
            spec=task_settings(CorrectnessSettings),
            # The file of the task's own correctness rule, and its code's hash.
            custom=lambda wildcards: (
                [CONFIG.custom_rules, custom_code(CONFIG.custom_rules)]
                if TASKS[wildcards.task].custom_rules
                else None
            ),
        ),
    script:
        "../workflow_scripts/label_answers.py"


rule accuracy:
    """Count the correct answers of each model and task."""
    input:
        labels=files_of_pairs("<results>/labels/{model}/{task}.parquet"),
        traces=files_of_pairs("<results>/traces/{model}/{task}.arrow"),
        tasks=files_of_pairs(QUESTIONS),
    output:
        accuracy="<results>/analyses/accuracy.parquet",
        languages="<results>/analyses/language_accuracy.parquet",
    log:
        "<logs>/accuracy.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings("accuracy.py"),
    script:
        "../workflow_scripts/accuracy.py"
