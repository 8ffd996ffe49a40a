# Figures.
# reads   analyses/; for the framework traces/, features/, labels/, predictions/, tasks/
# writes  figures/<name>.{pdf,svg}

# What each figure's module is given: `draw(**inputs, **settings)`.
FIGURE_INPUTS = {
    "framework": {
        "traces": of_main("<results>/traces/{model}/{task}.arrow"),
        "features": of_main("<results>/features/{model}/{task}.parquet"),
        "labels": of_main("<results>/labels/{model}/{task}.parquet"),
        "predictions": of_main("<results>/predictions/{model}/{task}.parquet"),
        "tasks": of_main("<results>/tasks/{task}.parquet"),
    },
    "performance_overview": {"means": "<results>/analyses/averages.parquet"},
    "spike_evidence": {
        "strata": "<results>/analyses/spike_strata.parquet",
        "quintiles": "<results>/analyses/spike_quintiles.parquet",
    },
    "local_risk_aggregation": {"selected": "<results>/analyses/local_risk.parquet"},
    "model_landscape": {"means": "<results>/analyses/averages.parquet"},
    "robustness_panels": {
        "sizes": "<results>/analyses/calibration_size_averages.parquet",
        "bins": "<results>/analyses/reliability_bins.parquet",
        "curve": "<results>/analyses/risk_coverage_curve.parquet",
        "stratified": "<results>/analyses/length_stratified_averages.parquet",
    },
}
FIGURE_SETTINGS = {
    "framework": {"pairs": main_pairs},
    "performance_overview": {"entries": COMPARED, "models": MODEL_LABELS, "study": STUDY},
    "model_landscape": {"entries": COMPARED, "models": MODEL_LABELS, "study": STUDY["cross"]},
    "robustness_panels": {"entries": REPRESENTATIVE, "study": STUDY["main"]},
}
LEFT_OUT_FIGURES = {"model_landscape": not STUDY["cross"], "robustness_panels": not FOLLOWED}
FIGURES = [name for name in FIGURE_INPUTS if not LEFT_OUT_FIGURES.get(name)]


localrules:
    draw,


rule draw:
    input:
        unpack(of_entry(FIGURE_INPUTS, "figure")),
    output:
        pdf="<results>/figures/{figure}.pdf",
        svg=report(
            "<results>/figures/{figure}.svg",
            caption="../report/caption.rst",
            **shown("{figure}", kind="figure"),
        ),
    log:
        "<logs>/draw/{figure}.log",
    wildcard_constraints:
        figure=one_of(FIGURES),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("draw/draw.py", "tracecal.figures.{figure}"),
        settings=of_entry(FIGURE_SETTINGS, "figure"),
        words=lambda wildcards: WORDS[wildcards.figure],
    message:
        "Drawing the figure {wildcards.figure}"
    script:
        "../workflow_scripts/draw/draw.py"
