# Tables, and the same beside the paper's.
# reads   metrics.parquet, analyses/
# writes  tables/<name>.{tex,csv,html}, tables/<name>_vs_paper.{csv,html}

from tracecal.render import published
from tracecal.render.averaged import AVERAGED

AVERAGED_TABLES = [
    name for name, what in AVERAGED.items() if len(what.wanted & {one.id for one in CHOSEN}) > 1
]
# Tables of one analysis each, by its name: analyses/<name>.parquet and tabulate_<name>.py.
ANALYSED = []
TABLES = ["main_comparison", "languages", "protocol_comparison", *AVERAGED_TABLES, *ANALYSED] + [
    "cross_model"
] * (STUDY["cross"] is not None)

try:
    PAPER = published.read()
except InputError as error:
    raise WorkflowError(str(error)) from None
BESIDE = [table for table in TABLES if table in PAPER]


rule tabulate_main_comparison:
    input:
        metrics="<results>/metrics.parquet",
    output:
        tex="<results>/tables/main_comparison.tex",
        csv="<results>/tables/main_comparison.csv",
        html=report(
            "<results>/tables/main_comparison.html",
            caption="../report/main_comparison.rst",
            **shown("main_comparison"),
        ),
    log:
        "<logs>/tabulate_main_comparison.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate_main_comparison.py"),
        estimators=COMPARED,
        models=lambda wildcards: MODEL_LABELS,
        tasks=lambda wildcards: TASK_LABELS,
        study=STUDY["main"],
    message:
        "Tabulating the main comparison"
    script:
        "../workflow_scripts/tabulate_main_comparison.py"


rule tabulate_languages:
    input:
        metrics="<results>/metrics.parquet",
        languages="<results>/analyses/languages.parquet",
    output:
        tex="<results>/tables/languages.tex",
        csv="<results>/tables/languages.csv",
        html=report(
            "<results>/tables/languages.html",
            caption="../report/languages.rst",
            **shown("languages"),
        ),
    log:
        "<logs>/tabulate_languages.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate_languages.py"),
        estimators=COMPARED,
        models=lambda wildcards: MODEL_LABELS,
        tasks=lambda wildcards: TASK_LABELS,
        study=STUDY["main"],
    message:
        "Tabulating the languages"
    script:
        "../workflow_scripts/tabulate_languages.py"


rule tabulate_cross_model:
    input:
        metrics="<results>/metrics.parquet",
        accuracy="<results>/analyses/accuracy.parquet",
    output:
        tex="<results>/tables/cross_model.tex",
        csv="<results>/tables/cross_model.csv",
        html=report(
            "<results>/tables/cross_model.html",
            caption="../report/cross_model.rst",
            **shown("cross_model"),
        ),
    log:
        "<logs>/tabulate_cross_model.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate_cross_model.py"),
        estimators=COMPARED,
        models=lambda wildcards: MODEL_LABELS,
        tasks=lambda wildcards: TASK_LABELS,
        study=STUDY["cross"],
    message:
        "Tabulating the cross-model study"
    script:
        "../workflow_scripts/tabulate_cross_model.py"


rule tabulate_protocol:
    output:
        tex="<results>/tables/protocol_comparison.tex",
        csv="<results>/tables/protocol_comparison.csv",
        html=report(
            "<results>/tables/protocol_comparison.html",
            caption="../report/protocol_comparison.rst",
            **shown("protocol_comparison"),
        ),
    log:
        "<logs>/tabulate_protocol.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate_protocol.py"),
        methods=protocol_rows(CHOSEN),
    message:
        "Tabulating the protocols"
    script:
        "../workflow_scripts/tabulate_protocol.py"


rule tabulate_averages:
    input:
        metrics="<results>/metrics.parquet",
    output:
        tex="<results>/tables/{averaged}.tex",
        csv="<results>/tables/{averaged}.csv",
        html=report(
            "<results>/tables/{averaged}.html",
            caption="../report/averaged.rst",
            **shown("{averaged}"),
        ),
    log:
        "<logs>/tabulate_averages/{averaged}.log",
    wildcard_constraints:
        averaged=one_of(AVERAGED_TABLES),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate_averages.py"),
        estimators=lambda wildcards: entries(
            one for one in CHOSEN if one.id in AVERAGED[wildcards.averaged].wanted
        ),
        models=lambda wildcards: MODEL_LABELS,
        tasks=lambda wildcards: TASK_LABELS,
        study=STUDY,
        requires=lambda wildcards: {
            one.id: one.requires for one in CHOSEN if one.id in AVERAGED[wildcards.averaged].wanted
        },
    message:
        "Tabulating {wildcards.averaged}"
    script:
        "../workflow_scripts/tabulate_averages.py"


rule tabulate_analysis:
    input:
        "<results>/analyses/{analysis}.parquet",
    output:
        tex="<results>/tables/{analysis}.tex",
        csv="<results>/tables/{analysis}.csv",
        html=report(
            "<results>/tables/{analysis}.html",
            caption="../report/analysis.rst",
            **shown("{analysis}"),
        ),
    log:
        "<logs>/tabulate/{analysis}.log",
    wildcard_constraints:
        analysis=one_of(ANALYSED),
    conda:
        "../envs/analysis.yaml"
    params:
        code=lambda wildcards: code(f"tabulate_{wildcards.analysis}.py"),
        estimators=COMPARED,
        models=lambda wildcards: MODEL_LABELS,
        tasks=lambda wildcards: TASK_LABELS,
        study=STUDY,
    message:
        "Tabulating {wildcards.analysis}"
    script:
        "../workflow_scripts/tabulate_{wildcards.analysis}.py"


rule compare_with_paper:
    input:
        "<results>/tables/{table}.csv",
    output:
        csv="<results>/tables/{table}_vs_paper.csv",
        html=report(
            "<results>/tables/{table}_vs_paper.html",
            caption="../report/vs_paper.rst",
            **shown("{table}", "Beside the paper"),
        ),
    log:
        "<logs>/compare_with_paper/{table}.log",
    wildcard_constraints:
        table=one_of(BESIDE),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("compare_with_paper.py"),
        published=text_hash(published.PAPER),
    message:
        "Comparing {wildcards.table} with the paper's"
    script:
        "../workflow_scripts/compare_with_paper.py"
