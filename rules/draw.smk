# Figures.
# reads   metrics.parquet, analyses/
# writes  figures/<name>.{pdf,svg}

FIGURES = ["performance_overview"] + ["model_landscape"] * (STUDY["cross"] is not None)
if REPRESENTATIVE:
    FIGURES += ["robustness_panels"]


rule draw_performance_overview:
    input:
        metrics="<results>/metrics.parquet",
    output:
        pdf="<results>/figures/performance_overview.pdf",
        svg=report(
            "<results>/figures/performance_overview.svg",
            caption="../report/performance_overview.rst",
            category="Which estimator wins",
            labels={"figure": "performance overview"},
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
            category="Which estimator wins",
            labels={"figure": "model landscape"},
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
            category="Is it calibrated",
            labels={"figure": "robustness panels"},
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
