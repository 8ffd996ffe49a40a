# The paper's analyses: one module of the room `analyse` and one rule each.
# reads   metrics.parquet, predictions/, scores/, features/, labels/, splits/, tasks/, operators/;
#         traces/ for the local-risk figure alone
# writes  analyses/<name>.parquet, resamples/{model}/{task}.parquet

BASELINES = [one.id for one in CHOSEN if one.role == "baseline"]


localrules:
    bound_improvements,


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


rule analyse_spike_strata:
    input:
        features=of_main("<results>/features/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        tasks=of_main("<results>/tasks/{task}.parquet"),
    output:
        strata="<results>/analyses/spike_strata.parquet",
        quintiles="<results>/analyses/spike_quintiles.parquet",
    log:
        "<logs>/analyse_spike_strata.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse_spike_strata.py"),
        pairs=main_pairs,
        seed=CONFIG.seed,
    message:
        "Counting errors by mean risk and spike gap"
    script:
        "../workflow_scripts/analyse_spike_strata.py"


rule analyse_spike_modeling:
    input:
        features=of_main("<results>/features/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
    output:
        "<results>/analyses/spike_modeling.parquet",
    log:
        "<logs>/analyse_spike_modeling.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse_spike_modeling.py"),
        pairs=main_pairs,
        method=CONFIG.calibration.method,
    message:
        "Fitting correctness on mean risk and spikes"
    script:
        "../workflow_scripts/analyse_spike_modeling.py"


rule analyse_localized_errors:
    input:
        scores=of_main("<results>/scores/{model}/{task}.parquet"),
        predictions=of_main("<results>/predictions/{model}/{task}.parquet"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        tasks=of_main("<results>/tasks/{task}.parquet"),
    output:
        "<results>/analyses/{errors}.parquet",
    log:
        "<logs>/analyse_localized_errors/{errors}.log",
    wildcard_constraints:
        errors="localized_global_errors|localized_error_subtypes",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse_localized_errors.py"),
        pairs=main_pairs,
        scored=[one.id for one in FOLLOWED if not one.features],
        learned=[one.id for one in FOLLOWED if one.features],
        baselines=[one.id for one in FOLLOWED if one.role == "baseline"],
        seed=CONFIG.seed,
    message:
        "Telling errors of a kind from correct answers: {wildcards.errors}"
    script:
        "../workflow_scripts/analyse_localized_errors.py"


rule select_local_risk:
    input:
        traces=of_main("<results>/traces/{model}/{task}.arrow"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
    output:
        "<results>/analyses/local_risk.parquet",
    log:
        "<logs>/select_local_risk.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("select_local_risk.py"),
        pairs=main_pairs,
    message:
        "Selecting wrong answers whose risk is local"
    script:
        "../workflow_scripts/select_local_risk.py"


rule resample:
    input:
        predictions="<results>/predictions/{model}/{task}.parquet",
        scores="<results>/scores/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/resamples/{model}/{task}.parquet",
    log:
        "<logs>/resample/{model}/{task}.log",
    benchmark:
        "<benchmarks>/resample/{model}/{task}.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("resample.py"),
        estimators=[entry[0] for entry in COMPARED],
        seed=CONFIG.seed,
        resamples=CONFIG.bootstrap.resamples,
    message:
        "Resampling the answers of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/resample.py"


rule bound_improvements:
    input:
        pairs("<results>/resamples/{model}/{task}.parquet"),
    output:
        "<results>/analyses/intervals.parquet",
    log:
        "<logs>/bound_improvements.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("bound_improvements.py"),
        baselines=BASELINES,
        study=STUDY,
        level=CONFIG.bootstrap.level,
    message:
        "Bounding the improvements of TRACE+"
    script:
        "../workflow_scripts/bound_improvements.py"


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
        metrics="<results>/analyses/cross_task_transfer.parquet",
        intervals="<results>/analyses/cross_task_transfer_intervals.parquet",
    log:
        "<logs>/transfer_calibration.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("transfer_calibration.py"),
        pairs=main_pairs,
        study={"main": STUDY["main"], "cross": None},
        estimators={one.id: one.inputs for one in CHOSEN if one.role in ("baseline", "trace")},
        baselines=BASELINES,
        method=CONFIG.calibration.method,
        ece_bins=CONFIG.calibration.ece_bins,
        seed=CONFIG.seed,
        resamples=CONFIG.bootstrap.resamples,
        level=CONFIG.bootstrap.level,
    message:
        "Calibrating each task on the others"
    script:
        "../workflow_scripts/transfer_calibration.py"
