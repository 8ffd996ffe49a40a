# Analyses. What each reads stands in the package's room `plan`.
# reads   metrics.parquet, analyses/, calibrators/, predictions/, scores/, features/, labels/, splits/,
#         tasks/, operators/; traces/ for the local-risk figure alone
# writes  analyses/<name>.parquet, resamples/{model}/{task}.parquet


localrules:
    summarise,


rule analyse:
    input:
        unpack(inputs_of(PLAN.analyses, "analysis")),
    output:
        "<results>/analyses/{analysis}.parquet",
    log:
        "<logs>/analyse/{analysis}.log",
    wildcard_constraints:
        analysis=one_of(name for name, made in PLAN.analyses.items() if not made.quick),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "analyse/analyse.py",
            loads=modules_of(PLAN.analyses, "analysis"),
            module=lambda wildcards: PLAN.analyses[wildcards.analysis].module,
            settings=settings_of(PLAN.analyses, "analysis"),
        ),
    message:
        "Analysing: {wildcards.analysis}"
    script:
        "../workflow_scripts/analyse/analyse.py"


# What takes a second, a cluster need not queue.
use rule analyse as summarise with:
    wildcard_constraints:
        analysis=one_of(name for name, made in PLAN.analyses.items() if made.quick),
    message:
        "Summarising: {wildcards.analysis}"


rule resample:
    input:
        predictions="<results>/predictions/{model}/{task}.parquet",
        scores="<results>/scores/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        task=questions,
    output:
        "<results>/resamples/{model}/{task}.parquet",
    log:
        "<logs>/resample/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "analyse/resample.py",
            estimators=[estimator.id for estimator in RUN.compared],
            seed=CONFIG.seed,
            resamples=CONFIG.bootstrap.resamples,
        ),
    message:
        "Resampling the answers of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/analyse/resample.py"


# By itself, as the improvements hang on resamples of the metrics' own predictions.
rule cross_task_transfer:
    input:
        unpack(lambda wildcards: PLAN.files(PLAN.transfer, run_pairs())),
    output:
        metrics="<results>/analyses/cross_task_transfer.parquet",
        improvements="<results>/analyses/cross_task_transfer_improvements.parquet",
    log:
        "<logs>/cross_task_transfer.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "analyse/cross_task_transfer.py",
            **PLAN.transfer.settings,
            pairs=lambda wildcards: wanted_pairs("main"),
        ),
    message:
        "Calibrating each task on the others"
    script:
        "../workflow_scripts/analyse/cross_task_transfer.py"
