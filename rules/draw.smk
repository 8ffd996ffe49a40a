# Figures. What each is drawn from stands in the package's room `plan`.
# reads   analyses/; for the framework traces/, features/, labels/, predictions/, tasks/
# writes  figures/<name>.{pdf,svg}


localrules:
    draw,


rule draw:
    input:
        unpack(inputs_of(PLAN.figures, "figure")),
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
        figure=one_of(PLAN.figures),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "draw/draw.py",
            loads=modules_of(PLAN.figures, "figure"),
            settings=settings_of(PLAN.figures, "figure"),
            words=lambda wildcards: WORDS[wildcards.figure],
        ),
    message:
        "Drawing the figure {wildcards.figure}"
    script:
        "../workflow_scripts/draw/draw.py"
