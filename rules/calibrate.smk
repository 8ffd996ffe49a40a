# The one calibration protocol, and every metric.
# reads   scores/, features/, labels/, splits/, tasks/, audits/
# writes  predictions/, work/calibrators/, calibrators/, metrics/, languages/{model}/{task}, metrics.parquet,
#         analyses/languages.parquet


localrules:
    collect_metrics,
    control_risk,
    resolve_config,


rule calibrate:
    input:
        # The audit gates everything that is reported: no probability from an unproven trace.
        audit="<results>/audits/{model}/{task}.json",
        scores="<results>/scores/{model}/{task}.parquet",
        features="<results>/features/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task="<results>/tasks/{task}.parquet",
    output:
        predictions="<results>/predictions/{model}/{task}.parquet",
        calibrators="<results>/work/calibrators/{model}/{task}.json",
    log:
        "<logs>/calibrate/{model}/{task}.log",
    benchmark:
        "<benchmarks>/calibrate/{model}/{task}.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("calibrate.py"),
        estimators=lambda wildcards: {one.id: one.inputs for one in chosen(wildcards)},
        method=CONFIG.calibration.method,
        uncalibrated=lambda wildcards: [one.id for one in chosen(wildcards) if not one.calibrated],
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
    benchmark:
        "<benchmarks>/measure/{model}/{task}.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("measure.py"),
        estimators=lambda wildcards: [one.id for one in chosen(wildcards)],
        ece_bins=CONFIG.calibration.ece_bins,
    message:
        "Measuring {wildcards.model} on {wildcards.task}"
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
        code=code("collect_metrics.py"),
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
        code=code("resolve_config.py"),
        digest=hash_of(resolved_yaml(CONFIG, TASKS, [one.id for one in CHOSEN])),
    message:
        "Writing down the resolved configuration"
    script:
        "../workflow_scripts/resolve_config.py"


# Apart from the fits, so that another target fits nothing anew.
rule control_risk:
    input:
        calibrators="<results>/work/calibrators/{model}/{task}.json",
        features="<results>/features/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        splits="<results>/splits/{task}.parquet",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/calibrators/{model}/{task}.json",
    log:
        "<logs>/control_risk/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("control_risk.py"),
        error_rates=list(CONFIG.risk_control.error_rates),
        confidence=CONFIG.risk_control.confidence,
    message:
        "Controlling the risk of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/control_risk.py"
