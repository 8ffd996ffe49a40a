# The analyses: a module of the room `analyse`, a script and a rule each, named like their file.
# reads   metrics.parquet, analyses/languages.parquet, calibrators/, predictions/, scores/,
#         features/, labels/, splits/, tasks/, operators/; traces/ for the local-risk figure alone
# writes  analyses/<name>.parquet, resamples/{model}/{task}.parquet

BASELINES = [entry.id for entry in CHOSEN if entry.role == "baseline"]
STUDIES = {
    name: {key: STUDY[name][key] for key in ("model", "models", "tasks") if key in STUDY[name]}
    for name in ("main", "cross")
    if STUDY[name]
}
MAIN = {"main": STUDIES["main"]}


# One bootstrap for all intervals.
BOOTSTRAP = {
    "seed": CONFIG.seed,
    "resamples": CONFIG.bootstrap.resamples,
    "level": CONFIG.bootstrap.level,
}


localrules:
    averages,
    improvements,
    risk_coverage,


rule averages:
    input:
        metrics="<results>/metrics.parquet",
        languages="<results>/analyses/languages.parquet",
    output:
        averages="<results>/analyses/averages.parquet",
        languages="<results>/analyses/language_averages.parquet",
    log:
        "<logs>/averages.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/averages.py"),
        studies=STUDIES,
    message:
        "Averaging over splits, tasks and models"
    script:
        "../workflow_scripts/analyse/averages.py"


rule risk_coverage:
    input:
        pairs("<results>/calibrators/{model}/{task}.json"),
    output:
        "<results>/analyses/risk_coverage.parquet",
    log:
        "<logs>/risk_coverage.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/risk_coverage.py"),
        pairs=lambda wildcards: [list(pair) for pair in wanted_pairs()],
    message:
        "Gathering the thresholds"
    script:
        "../workflow_scripts/analyse/risk_coverage.py"


rule hyperparameter_sensitivity:
    input:
        operators=of_main("<results>/operators/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
    output:
        "<results>/analyses/hyperparameter_sensitivity.parquet",
    log:
        "<logs>/hyperparameter_sensitivity.log",
    benchmark:
        "<benchmarks>/hyperparameter_sensitivity.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/hyperparameter_sensitivity.py"),
        pairs=main_pairs,
        method=CONFIG.calibration.method,
        ece_bins=CONFIG.calibration.ece_bins,
    message:
        "Varying TRACE's hyperparameters"
    script:
        "../workflow_scripts/analyse/hyperparameter_sensitivity.py"


rule position_shift:
    input:
        operators=of_main("<results>/operators/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
    output:
        "<results>/analyses/position_shift.parquet",
    log:
        "<logs>/position_shift.log",
    benchmark:
        "<benchmarks>/position_shift.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/position_shift.py"),
        pairs=main_pairs,
    message:
        "Moving risk to other positions"
    script:
        "../workflow_scripts/analyse/position_shift.py"


rule spike_strata:
    input:
        features=of_main("<results>/features/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        tasks=of_main("<results>/tasks/{task}.parquet"),
    output:
        strata="<results>/analyses/spike_strata.parquet",
        quintiles="<results>/analyses/spike_quintiles.parquet",
    log:
        "<logs>/spike_strata.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **BOOTSTRAP,
        code=code("analyse/spike_strata.py"),
        pairs=main_pairs,
    message:
        "Counting errors by mean risk and spike gap"
    script:
        "../workflow_scripts/analyse/spike_strata.py"


rule spike_modeling:
    input:
        features=of_main("<results>/features/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
    output:
        metrics="<results>/analyses/spike_modeling.parquet",
        averages="<results>/analyses/spike_modeling_averages.parquet",
    log:
        "<logs>/spike_modeling.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/spike_modeling.py"),
        pairs=main_pairs,
        method=CONFIG.calibration.method,
    message:
        "Fitting correctness on mean risk and spikes"
    script:
        "../workflow_scripts/analyse/spike_modeling.py"


rule localized_errors:
    input:
        scores=of_main("<results>/scores/{model}/{task}.parquet"),
        predictions=of_main("<results>/predictions/{model}/{task}.parquet"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        tasks=of_main("<results>/tasks/{task}.parquet"),
    output:
        "<results>/analyses/{errors}.parquet",
    log:
        "<logs>/localized_errors/{errors}.log",
    wildcard_constraints:
        errors="localized_global_errors|localized_error_subtypes",
    conda:
        "../envs/analysis.yaml"
    params:
        **BOOTSTRAP,
        code=code("analyse/localized_errors.py"),
        pairs=main_pairs,
        scored=[entry.id for entry in FOLLOWED if not entry.features],
        learned=[entry.id for entry in FOLLOWED if entry.features],
        baselines=[entry.id for entry in FOLLOWED if entry.role == "baseline"],
    message:
        "Separating errors of a kind from correct answers: {wildcards.errors}"
    script:
        "../workflow_scripts/analyse/localized_errors.py"


rule local_risk:
    input:
        traces=of_main("<results>/traces/{model}/{task}.arrow"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
    output:
        "<results>/analyses/local_risk.parquet",
    log:
        "<logs>/local_risk.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/local_risk.py"),
        pairs=main_pairs,
    message:
        "Selecting wrong answers whose risk is local"
    script:
        "../workflow_scripts/analyse/local_risk.py"


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
    benchmark:
        "<benchmarks>/resample/{model}/{task}.tsv"
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


rule improvements:
    input:
        averages="<results>/analyses/averages.parquet",
        languages="<results>/analyses/language_averages.parquet",
        resamples=pairs("<results>/resamples/{model}/{task}.parquet"),
    output:
        improvements="<results>/analyses/improvements.parquet",
        languages="<results>/analyses/language_improvements.parquet",
    log:
        "<logs>/improvements.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/improvements.py"),
        baselines=BASELINES,
        studies=STUDIES,
        level=CONFIG.bootstrap.level,
    message:
        "Comparing TRACE+ with the best baseline"
    script:
        "../workflow_scripts/analyse/improvements.py"


rule calibration_size:
    input:
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        scores=of_main("<results>/scores/{model}/{task}.parquet"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
        tasks=of_main(questions),
    output:
        metrics="<results>/analyses/calibration_size.parquet",
        averages="<results>/analyses/calibration_size_averages.parquet",
    log:
        "<logs>/calibration_size.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/calibration_size.py"),
        pairs=main_pairs,
        estimators={
            entry.id: entry.inputs for entry in CHOSEN if entry.id in registry.REPRESENTATIVE
        },
        method=CONFIG.calibration.method,
        ece_bins=CONFIG.calibration.ece_bins,
        share=CONFIG.splits.calibration_share,
        studies=MAIN,
    message:
        "Varying the size of the calibration part"
    script:
        "../workflow_scripts/analyse/calibration_size.py"


rule reliability_selective:
    input:
        predictions=of_main("<results>/predictions/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
    output:
        pooled="<results>/analyses/reliability_selective.parquet",
        averages="<results>/analyses/reliability_selective_averages.parquet",
        bins="<results>/analyses/reliability_bins.parquet",
        curve="<results>/analyses/risk_coverage_curve.parquet",
    log:
        "<logs>/reliability_selective.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/reliability_selective.py"),
        pairs=main_pairs,
        estimators=[entry.id for entry in CHOSEN if entry.id in registry.REPRESENTATIVE],
        ece_bins=CONFIG.calibration.ece_bins,
    message:
        "Evaluating predictions pooled over tasks"
    script:
        "../workflow_scripts/analyse/reliability_selective.py"


rule length_stratified:
    input:
        predictions=of_main("<results>/predictions/{model}/{task}.parquet"),
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        scores=of_main("<results>/scores/{model}/{task}.parquet"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
    output:
        metrics="<results>/analyses/length_stratified.parquet",
        averages="<results>/analyses/length_stratified_averages.parquet",
    log:
        "<logs>/length_stratified.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("analyse/length_stratified.py"),
        pairs=main_pairs,
        estimators=[entry.id for entry in CHOSEN if entry.id in registry.REPRESENTATIVE],
        ece_bins=CONFIG.calibration.ece_bins,
        studies=MAIN,
    message:
        "Evaluating short, medium and long answers"
    script:
        "../workflow_scripts/analyse/length_stratified.py"


rule cross_task_transfer:
    input:
        labels=of_main("<results>/labels/{model}/{task}.parquet"),
        scores=of_main("<results>/scores/{model}/{task}.parquet"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
        splits=of_main("<results>/splits/{task}.parquet"),
        tasks=of_main(questions),
    output:
        metrics="<results>/analyses/cross_task_transfer.parquet",
        improvements="<results>/analyses/cross_task_transfer_improvements.parquet",
    log:
        "<logs>/cross_task_transfer.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **BOOTSTRAP,
        code=code("analyse/cross_task_transfer.py"),
        pairs=main_pairs,
        studies=MAIN,
        estimators={
            entry.id: entry.inputs for entry in CHOSEN if entry.role in ("baseline", "trace")
        },
        baselines=BASELINES,
        method=CONFIG.calibration.method,
        ece_bins=CONFIG.calibration.ece_bins,
    message:
        "Calibrating each task on the others"
    script:
        "../workflow_scripts/analyse/cross_task_transfer.py"
