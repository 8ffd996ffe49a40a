# The calibration protocol, the same for every estimator, and every metric; then the same on the
# subset of each task that the expensive estimators are computed on.
# reads   traces/, scores/, features/, labels/, splits/, tasks/, audits/
# writes  predictions/, picked/, work/calibrators/, calibrators/, metrics/, languages/{model}/{task},
#         metrics.parquet, analyses/languages.parquet, config.yaml; the same below subset/

from tracecal.io.digests import hash_of

# The parts that one calibrator of their task tells apart.
PART_NAMES = lambda wildcards: (
    list(TASKS[wildcards.task].parts.pooled)
    if wildcards.task in PARENTS and CONFIG.calibration.method == "platt"
    else []
)
# What calibrating a subset shares.
CALIBRATION = {"method": CONFIG.calibration.method, "part_names": PART_NAMES}


localrules:
    accuracy_of_subset,
    collect_metrics,
    collect_metrics_of_subset,
    control_risk,
    join_scores_of_subset,
    resolve_config,


rule calibrate:
    input:
        # The audit comes before everything that is reported: no probability from an unchecked trace.
        audit=audit,
        scores="<results>/scores/{model}/{task}.parquet",
        features="<results>/features/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task=questions,
    output:
        predictions="<results>/predictions/{model}/{task}.parquet",
        calibrators="<results>/work/calibrators/{model}/{task}.json",
        picked="<results>/picked/{model}/{task}.parquet",
    log:
        "<logs>/calibrate/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "calibrate.py",
            estimators=lambda wildcards: chosen(wildcards).inputs,
            **CALIBRATION,
            own_fits=lambda wildcards: chosen(wildcards).own_fits,
            baselines=lambda wildcards: chosen(wildcards).baselines.ids,
        ),
    message:
        "Calibrating {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/calibrate.py"


rule measure:
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
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "measure.py",
            estimators=lambda wildcards: chosen(wildcards).ids,
            ece_bins=CONFIG.calibration.ece_bins,
        ),
    message:
        "Evaluating {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/measure.py"


rule collect_metrics:
    input:
        metrics=pairs("<results>/metrics/{model}/{task}.parquet"),
        languages=pairs("<results>/languages/{model}/{task}.parquet"),
    output:
        metrics="<results>/metrics.parquet",
        languages="<results>/analyses/languages.parquet",
    log:
        "<logs>/collect_metrics.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings("collect_metrics.py"),
    message:
        "Collecting the metrics"
    script:
        "../workflow_scripts/collect_metrics.py"


rule resolve_config:
    output:
        "<results>/config.yaml",
    log:
        "<logs>/resolve_config.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "resolve_config.py",
            digest=hash_of(RUN.resolved),
        ),
    message:
        "Writing the resolved configuration"
    script:
        "../workflow_scripts/resolve_config.py"


# Apart from `calibrate`, so that another target error rate refits nothing.
rule control_risk:
    input:
        calibrators="<results>/work/calibrators/{model}/{task}.json",
        traces="<results>/traces/{model}/{task}.arrow",
        features="<results>/features/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task=questions,
    output:
        "<results>/calibrators/{model}/{task}.json",
    log:
        "<logs>/control_risk/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "control_risk.py",
            known_as=lambda wildcards: MODELS[wildcards.model].known_as,
            error_rates=list(CONFIG.risk_control.error_rates),
            confidence=CONFIG.risk_control.confidence,
            largest_group=CONFIG.risk_control.largest_group,
            part_names=PART_NAMES,
        ),
    message:
        "Finding thresholds for the target error rates of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/control_risk.py"


use rule join_scores as join_scores_of_subset with:
    input:
        families=lambda wildcards: expand(
            "<results>/estimates/{family}/{{model}}/{{task}}.parquet",
            family=SELECTION.on_subset.families,
        ),
        task=subset,
    output:
        "<results>/subset/scores/{model}/{task}.parquet",
    log:
        "<logs>/join_scores_of_subset/{model}/{task}.log",
    params:
        **settings("join_scores.py", order=SELECTION.on_subset.scored.ids),


use rule calibrate as calibrate_on_subset with:
    input:
        audit=audit,
        scores="<results>/subset/scores/{model}/{task}.parquet",
        features="<results>/features/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task=subset,
    output:
        predictions="<results>/subset/predictions/{model}/{task}.parquet",
        calibrators="<results>/subset/calibrators/{model}/{task}.json",
        picked="<results>/subset/picked/{model}/{task}.parquet",
    log:
        "<logs>/calibrate_on_subset/{model}/{task}.log",
    params:
        **settings(
            "calibrate.py",
            **CALIBRATION,
            estimators=SELECTION.on_subset.inputs,
            own_fits=SELECTION.on_subset.own_fits,
            baselines=SELECTION.on_subset.baselines.ids,
        ),
    message:
        "Calibrating {wildcards.model} on a subset of {wildcards.task}"


use rule measure as measure_on_subset with:
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
    params:
        **settings(
            "measure.py",
            estimators=SELECTION.on_subset.ids,
            ece_bins=CONFIG.calibration.ece_bins,
        ),
    message:
        "Evaluating {wildcards.model} on a subset of {wildcards.task}"


use rule collect_metrics as collect_metrics_of_subset with:
    input:
        metrics=pairs("<results>/subset/metrics/{model}/{task}.parquet", "main"),
        languages=pairs("<results>/subset/languages/{model}/{task}.parquet", "main"),
    output:
        metrics="<results>/subset/metrics.parquet",
        languages="<results>/subset/languages.parquet",
    log:
        "<logs>/collect_metrics_of_subset.log",


use rule accuracy as accuracy_of_subset with:
    input:
        labels=pairs("<results>/labels/{model}/{task}.parquet", "main"),
        tasks=pairs(f"<results>/{SUBSETS}/{{task}}.parquet", "main"),
    output:
        accuracy="<results>/analyses/subset_accuracy.parquet",
        languages="<results>/analyses/subset_language_accuracy.parquet",
    log:
        "<logs>/accuracy_of_subset.log",
