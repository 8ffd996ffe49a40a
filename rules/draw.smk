# Figures.
# reads   metrics.parquet, analyses/; for the framework traces/, features/, predictions/, tasks/
# writes  figures/<name>.{pdf,svg}

FIGURES = [
    "framework",
    "performance_overview",
    "spike_evidence",
    "local_risk_aggregation",
    *["model_landscape"] * (STUDY["cross"] is not None),
    *["robustness_panels"] * bool(FOLLOWED),
]


localrules:
    draw_framework,
    draw_local_risk_aggregation,
    draw_model_landscape,
    draw_performance_overview,
    draw_robustness_panels,
    draw_spike_evidence,


rule draw_performance_overview:
    input:
        metrics="<results>/metrics.parquet",
    output:
        pdf="<results>/figures/performance_overview.pdf",
        svg=report(
            "<results>/figures/performance_overview.svg",
            caption="../report/performance_overview.rst",
            **shown("performance_overview"),
        ),
    log:
        "<logs>/draw_performance_overview.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("draw_performance_overview.py"),
        estimators=COMPARED,
        models=lambda wildcards: MODEL_LABELS,
        study=STUDY,
    message:
        "Drawing the performance overview"
    script:
        "../workflow_scripts/draw_performance_overview.py"


rule draw_model_landscape:
    input:
        metrics="<results>/metrics.parquet",
    output:
        pdf="<results>/figures/model_landscape.pdf",
        svg=report(
            "<results>/figures/model_landscape.svg",
            caption="../report/model_landscape.rst",
            **shown("model_landscape"),
        ),
    log:
        "<logs>/draw_model_landscape.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("draw_model_landscape.py"),
        estimators=COMPARED,
        models=lambda wildcards: MODEL_LABELS,
        study=STUDY["cross"],
    message:
        "Drawing the model landscape"
    script:
        "../workflow_scripts/draw_model_landscape.py"


rule draw_spike_evidence:
    input:
        strata="<results>/analyses/spike_strata.parquet",
        quintiles="<results>/analyses/spike_quintiles.parquet",
    output:
        pdf="<results>/figures/spike_evidence.pdf",
        svg=report(
            "<results>/figures/spike_evidence.svg",
            caption="../report/spike_evidence.rst",
            **shown("spike_evidence"),
        ),
    log:
        "<logs>/draw_spike_evidence.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("draw_spike_evidence.py"),
    message:
        "Drawing the spike evidence"
    script:
        "../workflow_scripts/draw_spike_evidence.py"


rule draw_local_risk_aggregation:
    input:
        "<results>/analyses/local_risk.parquet",
    output:
        pdf="<results>/figures/local_risk_aggregation.pdf",
        svg=report(
            "<results>/figures/local_risk_aggregation.svg",
            caption="../report/local_risk_aggregation.rst",
            **shown("local_risk_aggregation"),
        ),
    log:
        "<logs>/draw_local_risk_aggregation.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("draw_local_risk_aggregation.py"),
    message:
        "Drawing where the risk of wrong answers lies"
    script:
        "../workflow_scripts/draw_local_risk_aggregation.py"


rule draw_framework:
    input:
        traces=of_main("<results>/traces/{model}/{task}.arrow"),
        features=of_main("<results>/features/{model}/{task}.parquet"),
        predictions=of_main("<results>/predictions/{model}/{task}.parquet"),
        tasks=of_main("<results>/tasks/{task}.parquet"),
    output:
        pdf="<results>/figures/framework.pdf",
        svg=report(
            "<results>/figures/framework.svg",
            caption="../report/framework.rst",
            **shown("framework"),
        ),
    log:
        "<logs>/draw_framework.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("draw_framework.py"),
        pairs=main_pairs,
    message:
        "Drawing the framework"
    script:
        "../workflow_scripts/draw_framework.py"


rule draw_robustness_panels:
    input:
        sizes="<results>/analyses/calibration_size.parquet",
        bins="<results>/analyses/reliability_bins.parquet",
        curve="<results>/analyses/risk_coverage_curve.parquet",
        lengths="<results>/analyses/length_stratified.parquet",
    output:
        pdf="<results>/figures/robustness_panels.pdf",
        svg=report(
            "<results>/figures/robustness_panels.svg",
            caption="../report/robustness_panels.rst",
            **shown("robustness_panels"),
        ),
    log:
        "<logs>/draw_robustness_panels.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("draw_robustness_panels.py"),
        estimators=REPRESENTATIVE,
        study=STUDY["main"],
    message:
        "Drawing the robustness panels"
    script:
        "../workflow_scripts/draw_robustness_panels.py"
