# Figures.
# reads   metrics.parquet
# writes  figures/<name>.{pdf,svg}

FIGURES = ["performance_overview"] + ["model_landscape"] * (STUDY["cross"] is not None)


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
