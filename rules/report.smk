# What people read: tables, figures, the explorer's page, the findings, and what the run cost.
#
# write_table         the files that the plan names           -> tables/{table}.{tex,csv,html}
# compare_with_paper  tables/{table}.csv                      -> tables/{table}_vs_paper.{csv,html}
# describe_tables     tables/{table}.csv of all tables        -> tables/README.md
# copy_references     trace_workflow/config/references.bib    -> tables/references.bib
# draw_figure         the files that the plan names           -> figures/{figure}.{pdf,svg}
# make_explorer       traces/, tasks/, labels/, scores/, predictions/ of all pairs,
#                     analyses/risk_coverage.parquet          -> explorer.html
# tell_findings       the analyses ANALYSES_OF_FINDINGS       -> findings.{txt,csv}
# costs               tables/costs.{tex,csv,html}, the target of tabulate_costs
# tabulate_costs      benchmarks/, all that the run makes     -> tables/costs.{tex,csv,html}
#
# What a table or figure reads is data: its entry in trace_workflow/contents names its files.

from trace_workflow import figures
from trace_workflow import tables
from trace_workflow.config import paper
from tracecal.explorer.explorer_page import SOURCES
from tracecal.estimators.estimator import entries

# What `all` makes: tables, figures and pages, and a calibrator for each model and task.
RENDERED = expand("<results>/tables/{name}.{kind}", name=PLAN.tables, kind=["tex", "csv", "html"])
RENDERED += expand(
    "<results>/tables/{name}_vs_paper.{kind}", name=PLAN.beside_paper, kind=["csv", "html"]
)
RENDERED += ["<results>/tables/references.bib", "<results>/tables/README.md"]
RENDERED += expand("<results>/figures/{name}.{kind}", name=PLAN.figures, kind=["pdf", "svg"])
RENDERED += ["<results>/explorer.html", "<results>/findings.txt"]
CALIBRATORS = [f"<results>/calibrators/{model}/{task}.json" for model, task in PAIRS]
EVERYTHING = ["<results>/config.yaml", CALIBRATORS, RENDERED]

# A run without TRACE+ has no guarantees.
GUARANTEES = ["risk_coverage"] if "risk_coverage" in PLAN.tables else []

# The templates of pages, whose edits count as those of code do.
TABLE_PAGE, OVERVIEW = (
    text_hash(Path(tables.__file__).with_name(name)) for name in ("table.html", "overview.md")
)


rule write_table:
    """Write a table as LaTeX, CSV and HTML."""
    input:
        unpack(files_of_entry(PLAN.tables, "table")),
    output:
        tex="<results>/tables/{table}.tex",
        csv="<results>/tables/{table}.csv",
        html=report(
            "<results>/tables/{table}.html", caption="../report/caption.rst", **shown("{table}")
        ),
    log:
        "<logs>/write_table/{table}.log",
    wildcard_constraints:
        table=one_of(PLAN.tables),
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "write_table.py",
            loads=modules_of_entry(PLAN.tables, "table"),
            module=lambda wildcards: PLAN.tables[wildcards.table].module,
            function=lambda wildcards: PLAN.tables[wildcards.table].function,
            words=lambda wildcards: PLAN.table_words(
                wildcards.table, WORDS[wildcards.table], pairs_of_study()
            ),
            settings=lambda wildcards: PLAN.table_settings(wildcards.table),
            estimators=lambda wildcards: entries(PLAN.tables[wildcards.table].estimators),
            as_printed=lambda wildcards: wildcards.table in PLAN.as_printed,
            page=TABLE_PAGE,
        ),
    script:
        "../workflow_scripts/write_table.py"


rule compare_with_paper:
    """Set a table beside the paper's."""
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
        table=one_of(PLAN.beside_paper),
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "compare_with_paper.py",
            published=text_hash(paper.PAPER),
            page=TABLE_PAGE,
        ),
    script:
        "../workflow_scripts/compare_with_paper.py"


rule describe_tables:
    """Give an overview of all tables, a line a table."""
    input:
        expand("<results>/tables/{name}.csv", name=PLAN.tables),
    output:
        "<results>/tables/README.md",
    log:
        "<logs>/describe_tables.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "describe_tables.py",
            titles={name: WORDS[name]["title"] for name in PLAN.tables},
            page=OVERVIEW,
        ),
    script:
        "../workflow_scripts/describe_tables.py"


rule copy_references:
    """Copy the bibliography that the tables cite."""
    output:
        "<results>/tables/references.bib",
    log:
        "<logs>/copy_references.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "copy_references.py",
            references=text_hash(paper.BIBLIOGRAPHY),
        ),
    script:
        "../workflow_scripts/copy_references.py"


rule draw_figure:
    """Draw a figure as PDF and SVG."""
    input:
        unpack(files_of_entry(PLAN.figures, "figure")),
    output:
        pdf="<results>/figures/{figure}.pdf",
        svg=report(
            "<results>/figures/{figure}.svg",
            caption="../report/caption.rst",
            **shown("{figure}", kind="figure"),
        ),
    log:
        "<logs>/draw_figure/{figure}.log",
    wildcard_constraints:
        figure=one_of(PLAN.figures),
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "draw_figure.py",
            loads=modules_of_entry(PLAN.figures, "figure"),
            settings=settings_of_entry(PLAN.figures, "figure"),
            words=lambda wildcards: WORDS[wildcards.figure],
            style=text_hash(Path(figures.__file__).with_name("figures.mplstyle")),
        ),
    script:
        "../workflow_scripts/draw_figure.py"


rule make_explorer:
    """Make the page that shows answers with their traces and scores."""
    input:
        traces=files_of_pairs("<results>/traces/{model}/{task}.arrow"),
        # Parts are shown within their answers.
        parents=traces_of_explorer,
        tasks=files_of_pairs(QUESTIONS),
        labels=files_of_pairs("<results>/labels/{model}/{task}.parquet"),
        scores=files_of_pairs("<results>/scores/{model}/{task}.parquet"),
        predictions=files_of_pairs("<results>/predictions/{model}/{task}.parquet"),
        # The slider stands on the guarantee that the findings begin with.
        guarantees=[f"<results>/analyses/{name}.parquet" for name in GUARANTEES if RUN.headline],
    output:
        report(
            "<results>/explorer.html",
            caption="../report/caption.rst",
            **shown("explorer", kind="explorer"),
        ),
    log:
        "<logs>/make_explorer.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "make_explorer.py",
            page=[text_hash(source) for source in SOURCES],
            pairs=lambda wildcards: pairs_of_study(),
            parents=PARENTS,
            estimators=entries(SELECTION.chosen),
            models=lambda wildcards: dict(sorted(RUN.model_labels.items())),
            tasks=lambda wildcards: RUN.explored_tasks,
            run=CONFIG.run,
            main=CONFIG.study.main.model,
            seed=CONFIG.seed,
            headline=RUN.headline
            and {"model": CONFIG.study.main.model} | RUN.headline.model_dump(),
            words=WORDS["explorer"],
        ),
    script:
        "../workflow_scripts/make_explorer.py"


# The analyses that findings are made from.
ANALYSES_OF_FINDINGS = ["accuracy", "averages", "improvements", *GUARANTEES]


rule tell_findings:
    """Say in sentences what the run found."""
    input:
        **{name: f"<results>/analyses/{name}.parquet" for name in ANALYSES_OF_FINDINGS},
    output:
        txt="<results>/findings.txt",
        csv="<results>/findings.csv",
    log:
        "<logs>/tell_findings.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "tell_findings.py",
            estimators=entries(SELECTION.chosen),
            settings=PLAN.findings_settings(),
        ),
    script:
        "../workflow_scripts/tell_findings.py"


rule costs:
    """Make the table of what the run cost, as LaTeX, CSV and HTML."""
    input:
        expand("<results>/tables/costs.{kind}", kind=["tex", "csv", "html"]),
    localrule: True


# Benchmarks are no files of the workflow's graph: the rule reads those that exist.
rule tabulate_costs:
    """Tabulate time, memory and tokens per second from the benchmarks of the jobs."""
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
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "tabulate_costs.py",
            words=WORDS["costs"],
            page=TABLE_PAGE,
            models=lambda wildcards: RUN.model_labels,
            pairs=lambda wildcards: [list(pair) for pair in PAIRS],
        ),
    script:
        "../workflow_scripts/tabulate_costs.py"
