# Analyses of the metrics, predictions and traces.
# reads   metrics.parquet, analyses/, calibrators/, predictions/, scores/, features/, labels/, splits/,
#         tasks/; traces/ for the local-risk figure and the operators' variants
# writes  analyses/<name>.parquet, resamples/{model}/{task}.parquet, operators/{model}/{task}.parquet


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
            "analyse.py",
            loads=modules_of(PLAN.analyses, "analysis"),
            module=lambda wildcards: PLAN.analyses[wildcards.analysis].module,
            settings=settings_of(PLAN.analyses, "analysis"),
        ),
    message:
        "Analysing: {wildcards.analysis}"
    script:
        "../workflow_scripts/analyse.py"


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
            "resample.py",
            estimators=[*SELECTION.compared.ids, *SELECTION.beyond_paper.ids],
            seed=CONFIG.seed,
            resamples=CONFIG.bootstrap.resamples,
        ),
    message:
        "Resampling the answers of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/resample.py"


# By itself, as the improvements hang on resamples of the metrics' own predictions.
rule cross_task_transfer:
    input:
        unpack(lambda wildcards: PLAN.inputs(PLAN.transfer, run_pairs())),
    output:
        metrics="<results>/analyses/cross_task_transfer.parquet",
        improvements="<results>/analyses/cross_task_transfer_improvements.parquet",
    log:
        "<logs>/cross_task_transfer.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "cross_task_transfer.py",
            **PLAN.transfer.settings,
            pairs=lambda wildcards: wanted_pairs("main"),
        ),
    message:
        "Calibrating each task on the others"
    script:
        "../workflow_scripts/cross_task_transfer.py"


rule vary_operators:
    input:
        # As for `calibrate`: nothing is reported from an unchecked trace.
        audit=audit,
        traces="<results>/traces/{model}/{task}.arrow",
        task=questions,
    output:
        "<results>/operators/{model}/{task}.parquet",
    log:
        "<logs>/vary_operators/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "vary_operators.py",
            seed=CONFIG.seed,
        ),
    message:
        "Varying TRACE's operators for {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/vary_operators.py"
