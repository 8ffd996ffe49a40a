# Tables, and the same beside the paper's.
# reads   metrics.parquet, analyses/, calibrators/
# writes  tables/<name>.{tex,csv,html}, tables/<name>_vs_paper.{csv,html}, tables/references.bib

from tracecal.render import published, references
from tracecal.render.averaged import AVERAGED

AVERAGED_TABLES = [
    name for name, what in AVERAGED.items() if len(what.wanted & {one.id for one in CHOSEN}) > 1
]
# Tables of one analysis each, by its name: analyses/<name>.parquet and tabulate_<name>.py.
FEW = [
    "localized_global_errors",
    "localized_error_subtypes",
    "calibration_size",
    "reliability_selective",
    "length_stratified",
]
ANALYSED = [
    "hyperparameter_sensitivity",
    "position_shift",
    "spike_strata",
    "spike_modeling",
    "cross_task_transfer",
    *FEW * bool(FOLLOWED),
]
# What the registry says, and what lies behind the cross-model comparison.
STATED = ["protocol_comparison", "trace_plus_features"]
DETAILS = ["cross_model_task_details", "cross_model_best_estimators"]
TABLES = [
    "main_comparison",
    "languages",
    *STATED,
    *AVERAGED_TABLES,
    *ANALYSED,
    *["cross_model", *DETAILS] * (STUDY["cross"] is not None),
    *["risk_coverage"] * ("trace_plus" in {one.id for one in CHOSEN}),
]

try:
    PAPER = published.read()
except InputError as error:
    raise WorkflowError(str(error)) from None
BESIDE = [table for table in TABLES if table in PAPER]


localrules:
    compare_with_paper,
    copy_references,
    tabulate_analysis,
    tabulate_averages,
    tabulate_cross_details,
    tabulate_cross_model,
    tabulate_features,
    tabulate_languages,
    tabulate_main_comparison,
    tabulate_protocol,
    tabulate_risk_coverage,
    tabulate_transfer,


rule tabulate_main_comparison:
    input:
        metrics="<results>/metrics.parquet",
        intervals="<results>/analyses/intervals.parquet",
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
        intervals="<results>/analyses/intervals.parquet",
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
        analysis=one_of(set(ANALYSED) - {"cross_task_transfer"}),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate_{analysis}.py"),
        estimators=COMPARED,
        # The main study's alone: another model of the cross study is none of these tables' business.
        models=lambda wildcards: {slug: MODEL_LABELS[slug] for slug in [STUDY["main"]["model"]]},
        tasks=lambda wildcards: TASK_LABELS,
        study={"main": STUDY["main"]},
    message:
        "Tabulating {wildcards.analysis}"
    script:
        "../workflow_scripts/tabulate_{wildcards.analysis}.py"


use rule tabulate_analysis as tabulate_transfer with:
    input:
        metrics="<results>/analyses/{analysis}.parquet",
        intervals="<results>/analyses/{analysis}_intervals.parquet",
    wildcard_constraints:
        analysis="cross_task_transfer",


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


rule tabulate_features:
    output:
        tex="<results>/tables/trace_plus_features.tex",
        csv="<results>/tables/trace_plus_features.csv",
        html=report(
            "<results>/tables/trace_plus_features.html",
            caption="../report/trace_plus_features.rst",
            **shown("trace_plus_features"),
        ),
    log:
        "<logs>/tabulate_features.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate_features.py"),
        features=list(registry.TRACE_PLUS_FEATURES),
        excluded=list(registry.LIKELIHOOD),
    message:
        "Tabulating TRACE+'s features"
    script:
        "../workflow_scripts/tabulate_features.py"


rule tabulate_risk_coverage:
    input:
        pairs("<results>/calibrators/{model}/{task}.json"),
    output:
        tex="<results>/tables/risk_coverage.tex",
        csv="<results>/tables/risk_coverage.csv",
        html=report(
            "<results>/tables/risk_coverage.html",
            caption="../report/risk_coverage.rst",
            **shown("risk_coverage"),
        ),
    log:
        "<logs>/tabulate_risk_coverage.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate_risk_coverage.py"),
        pairs=lambda wildcards: [list(pair) for pair in wanted_pairs()],
        models=lambda wildcards: MODEL_LABELS,
        tasks=lambda wildcards: TASK_LABELS,
    message:
        "Tabulating risk and coverage"
    script:
        "../workflow_scripts/tabulate_risk_coverage.py"


rule copy_references:
    output:
        "<results>/tables/references.bib",
    log:
        "<logs>/copy_references.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("copy_references.py"),
        references=text_hash(references.BIBLIOGRAPHY),
    message:
        "Copying the bibliography"
    script:
        "../workflow_scripts/copy_references.py"


rule tabulate_cross_details:
    input:
        metrics="<results>/metrics.parquet",
        intervals="<results>/analyses/intervals.parquet",
    output:
        tex="<results>/tables/{detail}.tex",
        csv="<results>/tables/{detail}.csv",
        html=report(
            "<results>/tables/{detail}.html",
            caption="../report/cross_details.rst",
            **shown("{detail}"),
        ),
    log:
        "<logs>/tabulate/{detail}.log",
    wildcard_constraints:
        detail=one_of(DETAILS),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("tabulate_cross_details.py"),
        estimators=COMPARED,
        models=lambda wildcards: MODEL_LABELS,
        tasks=lambda wildcards: TASK_LABELS,
        study=STUDY["cross"],
    message:
        "Tabulating {wildcards.detail}"
    script:
        "../workflow_scripts/tabulate_cross_details.py"
