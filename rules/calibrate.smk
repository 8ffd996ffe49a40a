# The calibration protocol, the same for every estimator, and every metric.
# reads   traces/, scores/, features/, labels/, splits/, tasks/, audits/
# writes  predictions/, picked/, work/calibrators/, calibrators/, metrics/, languages/{model}/{task},
#         metrics.parquet, analyses/languages.parquet

from tracecal.config.run import resolved_yaml
from tracecal.jobs.provenance import hash_of


localrules:
    collect_metrics,
    control_risk,
    resolve_config,


# The parts that one calibrator of their task tells apart.
PART_NAMES = lambda wildcards: (
    list(TASKS[wildcards.task].parts.pooled)
    if wildcards.task in PARENTS and CONFIG.calibration.method == "platt"
    else []
)
# What calibrating a subset shares.
CALIBRATION = {"method": CONFIG.calibration.method, "part_names": PART_NAMES}


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
            "calibrate/calibrate.py",
            estimators=lambda wildcards: {e.id: e.inputs for e in chosen(wildcards)},
            **CALIBRATION,
            own_fits=lambda wildcards: {e.id: e.fit for e in chosen(wildcards) if e.fit},
            baselines=lambda wildcards: [e.id for e in chosen(wildcards) if e.role == "baseline"],
        ),
    message:
        "Calibrating {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/calibrate/calibrate.py"


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
            "calibrate/measure.py",
            estimators=lambda wildcards: [e.id for e in chosen(wildcards)],
            ece_bins=CONFIG.calibration.ece_bins,
        ),
    message:
        "Evaluating {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/calibrate/measure.py"


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
        **settings("calibrate/collect_metrics.py"),
    message:
        "Collecting the metrics"
    script:
        "../workflow_scripts/calibrate/collect_metrics.py"


rule resolve_config:
    output:
        "<results>/config.yaml",
    log:
        "<logs>/resolve_config.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "calibrate/resolve_config.py",
            digest=hash_of(resolved_yaml(CONFIG, TASKS, [e.id for e in RUN.chosen])),
        ),
    message:
        "Writing the resolved configuration"
    script:
        "../workflow_scripts/calibrate/resolve_config.py"


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
            "calibrate/control_risk.py",
            known_as=lambda wildcards: MODELS[wildcards.model].known_as,
            error_rates=list(CONFIG.risk_control.error_rates),
            confidence=CONFIG.risk_control.confidence,
            part_names=PART_NAMES,
            together=CONFIG.risk_control.together(len(CONFIG.study.pairs())),
        ),
    message:
        "Finding thresholds for the target error rates of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/calibrate/control_risk.py"
