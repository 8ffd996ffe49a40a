# The paper's analyses: one module of the room `analyse` and one rule each.
# reads   metrics.parquet, predictions/, scores/, features/, labels/, splits/, tasks/, operators/
# writes  analyses/<name>.parquet, resamples/{model}/{task}.parquet


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
        baselines=[one.id for one in CHOSEN if one.role == "baseline"],
        study=STUDY,
        level=CONFIG.bootstrap.level,
    message:
        "Bounding the improvements of TRACE+"
    script:
        "../workflow_scripts/bound_improvements.py"
