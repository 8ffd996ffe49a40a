# Analyses. What each reads stands in analyses.smk.
# reads   metrics.parquet, analyses/, calibrators/, predictions/, scores/, features/, labels/, splits/,
#         tasks/, operators/; traces/ for the local-risk figure alone
# writes  analyses/<name>.parquet, resamples/{model}/{task}.parquet


localrules:
    summarise,


rule analyse:
    input:
        unpack(of_entry(ANALYSIS_INPUTS, "analysis")),
    output:
        "<results>/analyses/{analysis}.parquet",
    log:
        "<logs>/analyse/{analysis}.log",
    wildcard_constraints:
        analysis=one_of({*ANALYSES} - {*SUMMARIES}),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/analyse.py", analysis_module),
        module=analysis_module,
        settings=of_entry(ANALYSIS_SETTINGS, "analysis"),
    message:
        "Analysing: {wildcards.analysis}"
    script:
        "../workflow_scripts/analyse/analyse.py"


# What takes a second, a cluster need not queue.
use rule analyse as summarise with:
    wildcard_constraints:
        analysis=one_of(SUMMARIES),
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
        code=code("analyse/resample.py"),
        estimators=[entry[0] for entry in COMPARED],
        seed=CONFIG.seed,
        resamples=CONFIG.bootstrap.resamples,
    message:
        "Resampling the answers of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/analyse/resample.py"


# By itself, as the improvements hang on resamples of the metrics' own predictions.
rule cross_task_transfer:
    input:
        **{
            kind: MAIN_FILES[kind]
            for kind in ("labels", "scores", "features", "splits", "questions")
        },
    output:
        metrics="<results>/analyses/cross_task_transfer.parquet",
        improvements="<results>/analyses/cross_task_transfer_improvements.parquet",
    log:
        "<logs>/cross_task_transfer.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/cross_task_transfer.py"),
        pairs=main_pairs,
        studies=MAIN,
        estimators={entry.id: entry.inputs for entry in MAIN_COMPARED},
        baselines=[entry.id for entry in MAIN_COMPARED if entry.role == "baseline"],
        method=METHOD,
        ece_bins=BINS,
        bootstrap=BOOTSTRAP,
    message:
        "Calibrating each task on the others"
    script:
        "../workflow_scripts/analyse/cross_task_transfer.py"
