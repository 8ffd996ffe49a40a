# What the run cost, step by step. A target of its own: times differ from run to run, and what
# `all` makes is the same byte for byte.
# reads   metrics.parquet (so that the measured jobs are over), benchmarks/, traces/, beams/, samples/
# writes  tables/costs.{tex,csv,html}


localrules:
    costs,
    gather_benchmarks,


rule costs:
    input:
        expand("<results>/tables/costs.{kind}", kind=["tex", "csv", "html"]),


# Benchmark files are no files of the workflow's graph; the rule reads those that are there.
rule gather_benchmarks:
    input:
        metrics="<results>/metrics.parquet",
    output:
        tex="<results>/tables/costs.tex",
        csv="<results>/tables/costs.csv",
        html=report(
            "<results>/tables/costs.html",
            caption="../report/costs.rst",
            **shown("costs"),
        ),
    log:
        "<logs>/gather_benchmarks.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("gather_benchmarks.py"),
        models=lambda wildcards: MODEL_LABELS,
        pairs=lambda wildcards: [list(pair) for pair in PAIRS],
    message:
        "Gathering what the run cost"
    script:
        "../workflow_scripts/gather_benchmarks.py"
