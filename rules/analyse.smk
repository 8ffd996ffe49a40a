# Analyses of the metrics, predictions and traces.
# reads   metrics.parquet, analyses/; of each pair calibrators/, predictions/, scores/, features/,
#         labels/, splits/, tasks/, and traces/ (operators' variants, local risk, early doubt, parts)
# writes  analyses/<name>.parquet, resamples/{model}/{task}.parquet, operators/{model}/{task}.parquet
#
# `analyse` makes, as trace_workflow/plan says, from the files of all pairs of a study:
#   spike_strata, spike_quintiles, spike_modeling          answers with and without a local spike
#   local_risk, localized_global_errors, ..._subtypes      where an answer is uncertain, kinds of errors
#   hyperparameter_sensitivity, position_shift             variants of TRACE's operators
#   calibration_size, length_stratified, few_labels        by number of labels, and by length
#   reliability_selective, reliability_bins, ..._curve     reliability and coverage
#   early_doubt, cascades/..., cascade_promises/...        answers that are not kept
#   localisation, part_scores                              parts of answers
# and `summarise`, from other analyses or small files: averages, comparisons, improvements,
# risk_coverage, language_averages, language_improvements, and averages of the above.


localrules:
    summarise,


rule analyse:
    input:
        unpack(planned_inputs(PLAN.analyses, "analysis")),
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
            loads=planned_modules(PLAN.analyses, "analysis"),
            module=lambda wildcards: PLAN.analyses[wildcards.analysis].module,
            settings=planned_settings(PLAN.analyses, "analysis"),
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
        unpack(lambda wildcards: PLAN.inputs(PLAN.transfer, pairs_of_run())),
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
