# Trace features of the evaluation answers, and TRACE's scores under other settings.
# reads   traces/{model}/{task}.arrow, tasks/{task}.parquet, audits/
# writes  features/{model}/{task}.parquet, operators/{model}/{task}.parquet


localrules:
    compute_features,


rule compute_features:
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        task=questions,
    output:
        "<results>/features/{model}/{task}.parquet",
    log:
        "<logs>/compute_features/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings("features/compute_features.py"),
    message:
        "Computing the trace features of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/features/compute_features.py"


rule vary_operators:
    input:
        # As for `calibrate`: nothing is reported from an unchecked trace.
        audit=audit,
        traces="<results>/traces/{model}/{task}.arrow",
        task=questions,
    output:
        "<results>/operators/{model}/{task}.parquet",
    log:
        "<logs>/vary_operators/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "features/vary_operators.py",
            seed=CONFIG.seed,
        ),
    message:
        "Varying TRACE's operators for {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/features/vary_operators.py"
