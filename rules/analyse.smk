# Analyses of the metrics, predictions and traces.
#
# analyse, summarise   the files that the plan names          -> analyses/{analysis}.parquet
# resample             predictions/, scores/, labels/: {model}/{task}; rows of the task
#                                                             -> resamples/{model}/{task}.parquet
# vary_operators       audits/, traces/: {model}/{task}; rows of the task
#                                                             -> operators/{model}/{task}.parquet
#
# What an analysis reads is data: its entry in trace_workflow/contents names its files.


rule analyse:
    """Make an analysis of the metrics, predictions or traces."""
    input:
        unpack(files_of_entry(PLAN.analyses, "analysis")),
    output:
        "<results>/analyses/{analysis}.parquet",
    log:
        "<logs>/analyse/{analysis}.log",
    benchmark:
        "<benchmarks>/analyse/{analysis}.tsv"
    wildcard_constraints:
        analysis=one_of(name for name, made in PLAN.analyses.items() if not made.quick),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "analyse.py",
            loads=modules_of_entry(PLAN.analyses, "analysis"),
            module=lambda wildcards: PLAN.analyses[wildcards.analysis].module,
            function=lambda wildcards: PLAN.analyses[wildcards.analysis].function,
            settings=settings_of_entry(PLAN.analyses, "analysis"),
        ),
    script:
        "../workflow_scripts/analyse.py"


# An analysis that takes a second need not be queued on a cluster.
use rule analyse as summarise with:
    """Make an analysis that takes a second."""
    wildcard_constraints:
        analysis=one_of(name for name, made in PLAN.analyses.items() if made.quick),
    localrule: True


rule resample:
    """Resample the answers of a model to a task, for intervals of differences."""
    input:
        predictions="<results>/predictions/{model}/{task}.parquet",
        scores="<results>/scores/{model}/{task}.parquet",
        labels="<results>/labels/{model}/{task}.parquet",
        task=rows_of_task,
    output:
        "<results>/resamples/{model}/{task}.parquet",
    log:
        "<logs>/resample/{model}/{task}.log",
    benchmark:
        "<benchmarks>/resample/{model}/{task}.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "resample.py",
            estimators=SELECTION.compared.ids,
            seed=CONFIG.seed,
            resamples=CONFIG.bootstrap.resamples,
        ),
    script:
        "../workflow_scripts/resample.py"


rule vary_operators:
    """Score answers with variants of TRACE's operators."""
    input:
        # Nothing is reported from an unchecked trace.
        audit=audit_of_traces,
        traces="<results>/traces/{model}/{task}.arrow",
        task=rows_of_task,
    output:
        "<results>/operators/{model}/{task}.parquet",
    log:
        "<logs>/vary_operators/{model}/{task}.log",
    benchmark:
        "<benchmarks>/vary_operators/{model}/{task}.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "vary_operators.py",
            seed=CONFIG.seed,
        ),
    script:
        "../workflow_scripts/vary_operators.py"
