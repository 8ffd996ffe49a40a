# The main study on a subset of its answers, where every estimator is computed: those that cost most,
# and all others fitted and evaluated on the same answers. Only with `study.broader`.
# reads   tasks/, estimates/, features/, labels/, splits/, audits/
# writes  work/subsets/{task}.parquet, subset/{scores,predictions,picked,metrics,languages}/{model}/{task},
#         subset/calibrators/{model}/{task}.json, subset/metrics.parquet,
#         analyses/subset_accuracy.parquet, and both analyses by language


localrules:
    accuracy_of_subset,
    collect_metrics_of_subset,
    draw_subset,
    join_scores_of_subset,


rule draw_subset:
    input:
        task="<results>/tasks/{task}.parquet",
    output:
        f"<results>/{SUBSETS}/{{task}}.parquet",
    log:
        "<logs>/draw_subset/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "tasks/draw_subset.py",
            seed=CONFIG.seed,
            answers=CONFIG.study.broader.answers if CONFIG.study.broader else None,
        ),
    message:
        "Drawing a subset of {wildcards.task}"
    script:
        "../workflow_scripts/tasks/draw_subset.py"


use rule join_scores as join_scores_of_subset with:
    input:
        families=lambda wildcards: expand(
            "<results>/estimates/{family}/{{model}}/{{task}}.parquet",
            family=sorted({e.family for e in RUN.on_subset if not e.features}),
        ),
        task=subset,
    output:
        "<results>/subset/scores/{model}/{task}.parquet",
    log:
        "<logs>/join_scores_of_subset/{model}/{task}.log",
    params:
        **settings("estimate/join_scores.py", order=[e.id for e in RUN.on_subset if not e.features]),


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
            "calibrate/calibrate.py",
            **CALIBRATION,
            estimators={e.id: e.inputs for e in RUN.on_subset},
            own_fits={e.id: e.fit for e in RUN.on_subset if e.fit},
            baselines=[e.id for e in RUN.on_subset if e.role == "baseline"],
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
            "calibrate/measure.py",
            estimators=[e.id for e in RUN.on_subset],
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
