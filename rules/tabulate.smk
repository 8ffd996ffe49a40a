# Tables, and the same beside the paper's. What each is made from stands in the package's room `plan`.
# reads   analyses/
# writes  tables/<name>.{tex,csv,html}, tables/<name>_vs_paper.{csv,html}, tables/references.bib,
#         tables/README.md

from tracecal.paper import published, references
from tracecal.tables import columns


localrules:
    compare_with_paper,
    copy_references,
    describe_tables,
    tabulate,


rule tabulate:
    input:
        unpack(inputs_of(PLAN.tables, "table")),
    output:
        tex="<results>/tables/{table}.tex",
        csv="<results>/tables/{table}.csv",
        html=report(
            "<results>/tables/{table}.html", caption="../report/caption.rst", **shown("{table}")
        ),
    log:
        "<logs>/tabulate/{table}.log",
    wildcard_constraints:
        table=one_of(PLAN.tables),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "tabulate/tabulate.py",
            loads=modules_of(PLAN.tables, "table"),
            module=lambda wildcards: PLAN.tables[wildcards.table].module,
            words=lambda wildcards: PLAN.words(
                wildcards.table, WORDS[wildcards.table], wanted_pairs()
            ),
            settings=lambda wildcards: PLAN.settings(wildcards.table),
            estimators=lambda wildcards: PLAN.shown(wildcards.table),
            as_printed=lambda wildcards: wildcards.table in PLAN.as_printed,
        ),
    message:
        "Tabulating {wildcards.table}"
    script:
        "../workflow_scripts/tabulate/tabulate.py"


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
        table=one_of(PLAN.beside),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "tabulate/compare_with_paper.py",
            published=text_hash(published.PAPER),
        ),
    message:
        "Comparing {wildcards.table} with the paper's"
    script:
        "../workflow_scripts/tabulate/compare_with_paper.py"


rule describe_tables:
    input:
        expand("<results>/tables/{name}.csv", name=PLAN.tables),
    output:
        "<results>/tables/README.md",
    log:
        "<logs>/describe_tables.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "tabulate/describe_tables.py",
            meanings=text_hash(columns.COLUMNS),
            titles={name: WORDS[name]["title"] for name in PLAN.tables},
            tasks=RUN.task_labels,
            estimators=[estimator.id for estimator in RUN.representative],
        ),
    message:
        "Describing the columns of the tables"
    script:
        "../workflow_scripts/tabulate/describe_tables.py"


rule copy_references:
    output:
        "<results>/tables/references.bib",
    log:
        "<logs>/copy_references.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "tabulate/copy_references.py",
            references=text_hash(references.BIBLIOGRAPHY),
        ),
    message:
        "Copying the bibliography"
    script:
        "../workflow_scripts/tabulate/copy_references.py"
