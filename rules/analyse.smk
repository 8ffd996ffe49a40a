# Analyses of the metrics, predictions and traces.
#
# analyse, summarise   the files of the analysis, below       -> analyses/{analysis}.parquet
# resample             predictions/, scores/, labels/: {model}/{task}; rows of the task
#                                                             -> resamples/{model}/{task}.parquet
# cross_task_transfer  labels/, scores/, features/, splits/, rows of the main study's pairs
#                                                             -> analyses/cross_task_transfer.parquet,
#                                                   analyses/cross_task_transfer_improvements.parquet
# vary_operators       audits/, traces/: {model}/{task}; rows of the task
#                                                             -> operators/{model}/{task}.parquet
#
# `analyse` reads files of all pairs of a study, as trace_workflow/plan says:
#   spike_strata, spike_quintiles, spike_modeling          features/, labels/; tasks/ or splits/
#   local_risk                                             traces/, features/, labels/
#   localized_global_errors, localized_error_subtypes      scores/, predictions/, features/, labels/, tasks/
#   hyperparameter_sensitivity, position_shift             operators/, labels/, splits/; features/
#   calibration_size, few_labels                           labels/, scores/, features/, splits/, rows
#   reliability_selective, reliability_bins, risk_coverage_curve     predictions/, labels/
#   length_stratified                                      predictions/, labels/, scores/, features/
#   localisation, part_scores                              of parts: labels/, traces/ or scores/, rows
# `summarise` reads other analyses or small files:
#   averages, subset_averages                              metrics.parquet, subset/metrics.parquet
#   improvements, comparisons, beyond_paper                resamples/; for improvements also picked/
#   risk_coverage                                          calibrators/
#   language_averages, language_improvements               analyses/languages.parquet and its averages
#   {analysis}_averages                                    the analysis


localrules:
    summarise,


rule analyse:
    input:
        unpack(files_of_entry(PLAN.analyses, "analysis")),
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
            loads=modules_of_entry(PLAN.analyses, "analysis"),
            module=lambda wildcards: PLAN.analyses[wildcards.analysis].module,
            function=lambda wildcards: PLAN.analyses[wildcards.analysis].function,
            settings=settings_of_entry(PLAN.analyses, "analysis"),
        ),
    message:
        "Analysing: {wildcards.analysis}"
    script:
        "../workflow_scripts/analyse.py"


# An analysis that takes a second need not be queued on a cluster.
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
        task=rows_of_task,
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


# With a rule of its own, as its improvements need resamples of the predictions that its metrics use.
rule cross_task_transfer:
    input:
        unpack(files_of_transfer),
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
            pairs=lambda wildcards: pairs_of_study("main"),
        ),
    message:
        "Calibrating each task on the others"
    script:
        "../workflow_scripts/cross_task_transfer.py"


rule vary_operators:
    input:
        # Nothing is reported from an unchecked trace.
        audit=audit_of_traces,
        traces="<results>/traces/{model}/{task}.arrow",
        task=rows_of_task,
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
