# Tables, and the same beside the paper's. What each reads stands in tables.smk.
# reads   analyses/
# writes  tables/<name>.{tex,csv,html}, tables/<name>_vs_paper.{csv,html}, tables/references.bib,
#         tables/README.md


localrules:
    compare_with_paper,
    copy_references,
    describe_tables,
    tabulate,


rule tabulate:
    input:
        unpack(
            lambda wildcards: {
                name: f"<results>/analyses/{name}.parquet"
                for name in MADE[wildcards.table]["analyses"]
            }
        ),
    output:
        tex="<results>/tables/{table}.tex",
        csv="<results>/tables/{table}.csv",
        html=report(
            "<results>/tables/{table}.html", caption="../report/caption.rst", **shown("{table}")
        ),
    log:
        "<logs>/tabulate/{table}.log",
    wildcard_constraints:
        table=one_of(TABLES),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate/tabulate.py", "tracecal.tables.{table}"),
        words=words,
        settings=labels,
        estimators=lambda wildcards: MADE[wildcards.table]["estimators"],
        as_printed=lambda wildcards: wildcards.table in AS_PRINTED,
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
        table=one_of(BESIDE),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate/compare_with_paper.py"),
        published=text_hash(published.PAPER),
    message:
        "Comparing {wildcards.table} with the paper's"
    script:
        "../workflow_scripts/tabulate/compare_with_paper.py"


rule describe_tables:
    input:
        expand("<results>/tables/{name}.csv", name=TABLES),
    output:
        "<results>/tables/README.md",
    log:
        "<logs>/describe_tables.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate/describe_tables.py"),
        meanings=text_hash(columns.COLUMNS),
        titles={name: WORDS[name]["title"] for name in TABLES},
        tasks=TASK_LABELS,
        estimators=[entry.id for entry in FOLLOWED],
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
        code=code("tabulate/copy_references.py"),
        references=text_hash(references.BIBLIOGRAPHY),
    message:
        "Copying the bibliography"
    script:
        "../workflow_scripts/tabulate/copy_references.py"
