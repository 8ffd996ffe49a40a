# Trace features of the evaluation answers.
# reads   traces/{model}/{task}.arrow, tasks/{task}.parquet
# writes  features/{model}/{task}.parquet


localrules:
    compute_features,


rule compute_features:
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/features/{model}/{task}.parquet",
    log:
        "<logs>/compute_features/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("compute_features.py"),
    message:
        "Computing the trace features of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/compute_features.py"
