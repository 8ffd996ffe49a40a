# Confidence scores: features of the traces, supervised estimators, one file per family of
# estimators, and all scores side by side.
#
# compute_features  traces/{model}/{task}.arrow, rows of the task   -> features/{model}/{task}.parquet
# learn_probe       hidden/, labels/, tasks/ of the model's pairs   -> work/learned/internal_probe/{model}/
# learn_lars        traces/, labels/, tasks/ of the model's pairs,  -> work/learned/lars/{model}/
#                   models/{model}/, encoders/lars/
# estimate_family   the files that the plan names                   -> estimates/{family}/{model}/{task}.parquet
# join_scores       estimates/, rows of the task                    -> scores/{model}/{task}.parquet
#
# learn_probe and learn_lars also write work/learned/scores/{family}/{model}.parquet. What a family reads is
# data: the needs of its estimators (tracecal/estimators/registry.py) say it.
#
# Supervised estimators are trained once per model, on the rows of role 'training' of all its tasks. A
# new task with such rows is new training data: the estimators are trained again and score all answers
# of the model again; nothing is decoded again. Tasks without such rows are inputs too, as their
# evaluation examples must not be among the training rows.


rule compute_features:
    """Compute the features of each trace."""
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        task=rows_of_task,
    output:
        "<results>/features/{model}/{task}.parquet",
    log:
        "<logs>/compute_features/{model}/{task}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings("compute_features.py"),
    script:
        "../workflow_scripts/compute_features.py"


rule learn_probe:
    """Train the probe of a model's hidden states."""
    input:
        hidden=files_of_pairs("<results>/hidden/{model}/{task}.arrow", "whole"),
        labels=files_of_pairs("<results>/labels/{model}/{task}.parquet", "whole"),
        tasks=files_of_pairs("<results>/tasks/{task}.parquet", "whole"),
    output:
        learned=directory("<results>/work/learned/internal_probe/{model}"),
        scores="<results>/work/learned/scores/internal_probe/{model}.parquet",
    log:
        "<logs>/learn_probe/{model}.log",
    benchmark:
        "<benchmarks>/learn_probe/{model}.tsv"
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    threads: 1
    resources:
        **requests(most_gpus=1),
    params:
        **settings(
            "learn_probe.py",
            expansion=CONFIG.probe.expansion,
            fitting=CONFIG.probe.fitting.model_dump() | {"seed": CONFIG.seed},
        ),
    script:
        "../workflow_scripts/learn_probe.py"


rule learn_lars:
    """Train the LARS scorer of a model."""
    input:
        # None where a small encoder is trained from scratch on the model's own tokens.
        encoder=[] if CONFIG.lars.encoder.source.train else "<results>/encoders/lars",
        model="<results>/models/{model}",
        traces=files_of_pairs("<results>/traces/{model}/{task}.arrow", "whole"),
        labels=files_of_pairs("<results>/labels/{model}/{task}.parquet", "whole"),
        tasks=files_of_pairs("<results>/tasks/{task}.parquet", "whole"),
    output:
        learned=directory("<results>/work/learned/lars/{model}"),
        scores="<results>/work/learned/scores/lars/{model}.parquet",
    log:
        "<logs>/learn_lars/{model}.log",
    benchmark:
        "<benchmarks>/learn_lars/{model}.tsv"
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    threads: 1
    resources:
        **requests(most_gpus=1),
    params:
        **settings(
            "learn_lars.py",
            small=CONFIG.lars.encoder.source.model_dump()["train"],
            trained=CONFIG.lars.encoder.trained,
            bins=CONFIG.lars.bins,
            fitting=CONFIG.lars.fitting.model_dump() | {"seed": CONFIG.seed},
        ),
    script:
        "../workflow_scripts/learn_lars.py"


rule estimate_family:
    """Score answers by the estimators of a family."""
    input:
        unpack(files_of_entry(PLAN.families, "family")),
    output:
        "<results>/estimates/{family}/{model}/{task}.parquet",
    log:
        "<logs>/estimate_family/{family}/{model}/{task}.log",
    wildcard_constraints:
        family=one_of(PLAN.families),
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "estimate_family.py",
            loads=modules_of_entry(PLAN.families, "family"),
            module=lambda wildcards: PLAN.families[wildcards.family].module,
            chosen=lambda wildcards: PLAN.families[wildcards.family].scores,
            settings=lambda wildcards: PLAN.families[wildcards.family].settings_of(wildcards.task),
            custom_code=lambda wildcards: PLAN.families[wildcards.family].custom_code,
        ),
    script:
        "../workflow_scripts/estimate_family.py"


rule join_scores:
    """Join the scores of all families."""
    input:
        families=estimates_of_task,
        task=rows_of_task,
    output:
        "<results>/scores/{model}/{task}.parquet",
    log:
        "<logs>/join_scores/{model}/{task}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "join_scores.py",
            order=lambda wildcards: estimators_of(wildcards).scored.ids,
        ),
    script:
        "../workflow_scripts/join_scores.py"
