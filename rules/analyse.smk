# The paper's analyses: one module of the room `analyse` and one rule each.
# reads   metrics.parquet, predictions/, scores/, features/, labels/, splits/, tasks/, operators/
# writes  analyses/<name>.parquet


rule analyse_hyperparameter_sensitivity:
    input:
        operators=of_main("<results>/operators/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
    output:
        "<results>/analyses/hyperparameter_sensitivity.parquet",
    log:
        "<logs>/analyse_hyperparameter_sensitivity.log",
    benchmark:
        "<benchmarks>/analyse_hyperparameter_sensitivity.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse_hyperparameter_sensitivity.py"),
        pairs=main_pairs,
        method=CONFIG.calibration.method,
        ece_bins=CONFIG.calibration.ece_bins,
    message:
        "Varying TRACE's hyperparameters"
    script:
        "../workflow_scripts/analyse_hyperparameter_sensitivity.py"


rule analyse_position_shift:
    input:
        operators=of_main("<results>/operators/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
    output:
        "<results>/analyses/position_shift.parquet",
    log:
        "<logs>/analyse_position_shift.log",
    benchmark:
        "<benchmarks>/analyse_position_shift.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse_position_shift.py"),
        pairs=main_pairs,
    message:
        "Moving risk to other positions"
    script:
        "../workflow_scripts/analyse_position_shift.py"
