# What the run cost, step by step. A target of its own: times differ from run to run, and what
# `all` makes is the same byte for byte.
# reads   logs/, traces/, beams/, samples/; all else, so that the measured jobs are over
# writes  tables/costs.{tex,csv,html}


localrules:
    costs,
    tabulate_costs,


rule costs:
    input:
        expand("<results>/tables/costs.{kind}", kind=["tex", "csv", "html"]),


# Logs are not files of the workflow's graph; the rule reads those that are there.
rule tabulate_costs:
    input:
        EVERYTHING,
        config="<results>/config.yaml",
    output:
        tex="<results>/tables/costs.tex",
        csv="<results>/tables/costs.csv",
        html=report(
            "<results>/tables/costs.html",
            caption="../report/caption.rst",
            **shown("costs"),
        ),
    log:
        "<logs>/tabulate_costs.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "costs/tabulate_costs.py",
            words=WORDS["costs"],
            models=lambda wildcards: RUN.model_labels,
            pairs=lambda wildcards: [list(pair) for pair in PAIRS],
        ),
    message:
        "Gathering what the run cost"
    script:
        "../workflow_scripts/costs/tabulate_costs.py"
