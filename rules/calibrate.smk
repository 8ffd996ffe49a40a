# The calibration protocol, the same for every estimator, and every metric; then the same on the
# subset of each task for which the expensive estimators are computed.
#
# calibrate        audits/, traces/, scores/, features/, labels/: {model}/{task}; splits/{task}.parquet,
#                  rows of the task  -> {predictions,picked}/{model}/{task}.parquet,
#                                       work/calibrators/{model}/{task}.json
# measure          predictions/, scores/, labels/: {model}/{task}; splits/, tasks/: {task}
#                                    -> {metrics,languages}/{model}/{task}.parquet
# collect_metrics  metrics/ and languages/ of all pairs
#                                    -> metrics.parquet, analyses/languages.parquet
# control_risk     work/calibrators/, traces/, scores/, features/, labels/: {model}/{task}; splits/{task}.parquet,
#                  rows of the task -> calibrators/{model}/{task}.json
#
# join_scores_of_subset, calibrate_on_subset, measure_on_subset and collect_metrics_of_subset do the
# same with the rows of the subset, below subset/; accuracy_of_subset writes
# analyses/subset_accuracy.parquet and analyses/subset_language_accuracy.parquet.

# The parts of answers that share a calibrator, which has a term for each of them.
pooled_parts = lambda wildcards: (
    list(TASKS[wildcards.task].parts.pooled)
    if wildcards.task in PARENTS and CONFIG.calibration.method == "platt"
    else []
)

# Settings of `calibrate` on a subset, too.
CALIBRATION = {
    "known_as": lambda wildcards: MODELS[wildcards.model].known_as,
    "method": CONFIG.calibration.method,
    "part_names": pooled_parts,
}


rule calibrate:
    """Calibrate every estimator of a model on a task."""
    input:
        # No probability is reported from an unchecked trace.
        audit=audit_of_traces,
        # The calibrator says what traces it is of.
        traces="<results>/traces/{model}/{task}.arrow",
        scores="<results>/scores/{model}/{task}.parquet",
        features="<results>/features/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task=rows_of_task,
    output:
        predictions="<results>/predictions/{model}/{task}.parquet",
        calibrators="<results>/work/calibrators/{model}/{task}.json",
        picked="<results>/picked/{model}/{task}.parquet",
    log:
        "<logs>/calibrate/{model}/{task}.log",
    benchmark:
        "<benchmarks>/calibrate/{model}/{task}.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "calibrate.py",
            estimators=lambda wildcards: estimators_of(wildcards).inputs,
            **CALIBRATION,
            own_fits=lambda wildcards: estimators_of(wildcards).own_fits,
            baselines=lambda wildcards: estimators_of(wildcards).baselines.ids,
        ),
    script:
        "../workflow_scripts/calibrate.py"


rule measure:
    """Measure the calibrated probabilities of a model on a task."""
    input:
        predictions="<results>/predictions/{model}/{task}.parquet",
        scores="<results>/scores/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task="<results>/tasks/{task}.parquet",
    output:
        metrics="<results>/metrics/{model}/{task}.parquet",
        languages="<results>/languages/{model}/{task}.parquet",
    log:
        "<logs>/measure/{model}/{task}.log",
    benchmark:
        "<benchmarks>/measure/{model}/{task}.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "measure.py",
            estimators=lambda wildcards: estimators_of(wildcards).ids,
            ece_bins=CONFIG.calibration.ece_bins,
        ),
    script:
        "../workflow_scripts/measure.py"


rule collect_metrics:
    """Collect the metrics of all models and tasks."""
    input:
        metrics=files_of_pairs("<results>/metrics/{model}/{task}.parquet"),
        languages=files_of_pairs("<results>/languages/{model}/{task}.parquet"),
    output:
        metrics="<results>/metrics.parquet",
        languages="<results>/analyses/languages.parquet",
    log:
        "<logs>/collect_metrics.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings("collect_metrics.py"),
    script:
        "../workflow_scripts/collect_metrics.py"


# Apart from `calibrate`, so that another target error rate refits nothing.
rule control_risk:
    """Find the thresholds that keep the target error rates."""
    input:
        calibrators="<results>/work/calibrators/{model}/{task}.json",
        traces="<results>/traces/{model}/{task}.arrow",
        scores="<results>/scores/{model}/{task}.parquet",
        features="<results>/features/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task=rows_of_task,
    output:
        "<results>/calibrators/{model}/{task}.json",
    log:
        "<logs>/control_risk/{model}/{task}.log",
    benchmark:
        "<benchmarks>/control_risk/{model}/{task}.tsv"
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "control_risk.py",
            targets=CONFIG.risk_control.model_dump(mode="json"),
            part_names=pooled_parts,
        ),
    script:
        "../workflow_scripts/control_risk.py"


use rule join_scores as join_scores_of_subset with:
    """Join the scores of all families on a subset."""
    input:
        families=lambda wildcards: expand(
            "<results>/estimates/{family}/{{model}}/{{task}}.parquet",
            family=SELECTION.on_subset(wildcards.model).families,
        ),
        task=rows_of_subset,
    output:
        "<results>/subset/scores/{model}/{task}.parquet",
    log:
        "<logs>/join_scores_of_subset/{model}/{task}.log",
    localrule: True
    params:
        **settings(
            "join_scores.py",
            order=lambda wildcards: SELECTION.on_subset(wildcards.model).scored.ids,
        ),


use rule calibrate as calibrate_on_subset with:
    """Calibrate every estimator of a model on a subset of a task."""
    input:
        audit=audit_of_traces,
        traces="<results>/traces/{model}/{task}.arrow",
        scores="<results>/subset/scores/{model}/{task}.parquet",
        features="<results>/features/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task=rows_of_subset,
    output:
        predictions="<results>/subset/predictions/{model}/{task}.parquet",
        calibrators="<results>/subset/calibrators/{model}/{task}.json",
        picked="<results>/subset/picked/{model}/{task}.parquet",
    log:
        "<logs>/calibrate_on_subset/{model}/{task}.log",
    benchmark:
        "<benchmarks>/calibrate_on_subset/{model}/{task}.tsv"
    params:
        **settings(
            "calibrate.py",
            **CALIBRATION,
            estimators=lambda wildcards: SELECTION.on_subset(wildcards.model).inputs,
            own_fits=lambda wildcards: SELECTION.on_subset(wildcards.model).own_fits,
            baselines=lambda wildcards: SELECTION.on_subset(wildcards.model).baselines.ids,
        ),


use rule measure as measure_on_subset with:
    """Measure the calibrated probabilities of a model on a subset of a task."""
    input:
        predictions="<results>/subset/predictions/{model}/{task}.parquet",
        scores="<results>/subset/scores/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task="<results>/tasks/{task}.parquet",
    output:
        metrics="<results>/subset/metrics/{model}/{task}.parquet",
        languages="<results>/subset/languages/{model}/{task}.parquet",
    log:
        "<logs>/measure_on_subset/{model}/{task}.log",
    benchmark:
        "<benchmarks>/measure_on_subset/{model}/{task}.tsv"
    params:
        **settings(
            "measure.py",
            estimators=lambda wildcards: SELECTION.on_subset(wildcards.model).ids,
            ece_bins=CONFIG.calibration.ece_bins,
        ),


use rule collect_metrics as collect_metrics_of_subset with:
    """Collect the metrics of all subsets."""
    input:
        metrics=files_of_pairs("<results>/subset/metrics/{model}/{task}.parquet", "broader"),
        languages=files_of_pairs("<results>/subset/languages/{model}/{task}.parquet", "broader"),
    output:
        metrics="<results>/subset/metrics.parquet",
        languages="<results>/subset/languages.parquet",
    log:
        "<logs>/collect_metrics_of_subset.log",
    localrule: True


use rule accuracy as accuracy_of_subset with:
    """Count the correct answers to the subsets."""
    input:
        labels=files_of_pairs("<results>/labels/{model}/{task}.parquet", "broader"),
        traces=files_of_pairs("<results>/traces/{model}/{task}.arrow", "broader"),
        tasks=files_of_pairs(f"<results>/{SUBSETS}/{{task}}.parquet", "broader"),
    output:
        accuracy="<results>/analyses/subset_accuracy.parquet",
        languages="<results>/analyses/subset_language_accuracy.parquet",
    log:
        "<logs>/accuracy_of_subset.log",
    localrule: True
