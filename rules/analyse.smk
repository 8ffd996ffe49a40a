# The paper's analyses: one module of the room `analyse` and one rule each.
# reads   metrics.parquet, predictions/, scores/, features/, labels/, splits/, tasks/, operators/
# writes  analyses/<name>.parquet


rule vary_calibration_size:
    input:
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        scores=of_main("<results>/scores/{model}/{task}.parquet"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
        tasks=of_main("<results>/tasks/{task}.parquet"),
    output:
        "<results>/analyses/calibration_size.parquet",
    log:
        "<logs>/vary_calibration_size.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("vary_calibration_size.py"),
        pairs=main_pairs,
        estimators={one.id: one.inputs for one in CHOSEN if one.id in registry.REPRESENTATIVE},
        method=CONFIG.calibration.method,
        ece_bins=CONFIG.calibration.ece_bins,
        share=CONFIG.splits.calibration_share,
    message:
        "Varying the size of the calibration part"
    script:
        "../workflow_scripts/vary_calibration_size.py"


rule pool_predictions:
    input:
        predictions=of_main("<results>/predictions/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
    output:
        pooled="<results>/analyses/reliability_selective.parquet",
        bins="<results>/analyses/reliability_bins.parquet",
        curve="<results>/analyses/risk_coverage_curve.parquet",
    log:
        "<logs>/pool_predictions.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("pool_predictions.py"),
        pairs=main_pairs,
        estimators=[one.id for one in CHOSEN if one.id in registry.REPRESENTATIVE],
        ece_bins=CONFIG.calibration.ece_bins,
    message:
        "Measuring predictions pooled over tasks"
    script:
        "../workflow_scripts/pool_predictions.py"


rule stratify_by_length:
    input:
        predictions=of_main("<results>/predictions/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        scores=of_main("<results>/scores/{model}/{task}.parquet"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
    output:
        "<results>/analyses/length_stratified.parquet",
    log:
        "<logs>/stratify_by_length.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("stratify_by_length.py"),
        pairs=main_pairs,
        estimators=[one.id for one in CHOSEN if one.id in registry.REPRESENTATIVE],
        ece_bins=CONFIG.calibration.ece_bins,
    message:
        "Measuring short, medium and long answers"
    script:
        "../workflow_scripts/stratify_by_length.py"


rule transfer_calibration:
    input:
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        scores=of_main("<results>/scores/{model}/{task}.parquet"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
        tasks=of_main("<results>/tasks/{task}.parquet"),
    output:
        "<results>/analyses/cross_task_transfer.parquet",
    log:
        "<logs>/transfer_calibration.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("transfer_calibration.py"),
        pairs=main_pairs,
        model=STUDY["main"]["model"],
        estimators={one.id: one.inputs for one in CHOSEN if one.role in ("baseline", "trace")},
        method=CONFIG.calibration.method,
        ece_bins=CONFIG.calibration.ece_bins,
    message:
        "Calibrating each task on the others"
    script:
        "../workflow_scripts/transfer_calibration.py"
