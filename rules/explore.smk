# The answer explorer: every answer with its trace and its score by each estimator; and the run's
# findings in a few sentences, which the report's first page tells (report/workflow.rst).
# reads   traces/, tasks/, labels/, scores/, predictions/, analyses/
# writes  explorer.html, findings.txt

from tracecal.explore.page import SOURCES
from tracecal.plan.results import analysed
from tracecal.registry.estimators import entries

TRACES = "<results>/traces/{model}/{task}.arrow"


localrules:
    tell_findings,


rule make_explorer:
    input:
        traces=pairs(TRACES),
        # Parts are shown within their answers.
        wholes=lambda wildcards: [
            PLAN.path(TRACES, model=model, task=PARENTS.get(task, task))
            for model, task in wanted_pairs()
        ],
        tasks=pairs(QUESTIONS),
        labels=pairs("<results>/labels/{model}/{task}.parquet"),
        scores=pairs("<results>/scores/{model}/{task}.parquet"),
        predictions=pairs("<results>/predictions/{model}/{task}.parquet"),
        promises=[analysed("cascade_promises")] if "cascade_promises" in PLAN.analyses else [],
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
            "explore/make_explorer.py",
            page=[text_hash(source) for source in SOURCES],
            pairs=lambda wildcards: wanted_pairs(),
            parents=PARENTS,
            estimators=entries(RUN.chosen),
            models=lambda wildcards: dict(sorted(RUN.model_labels.items())),
            tasks=lambda wildcards: RUN.task_labels,
            run=CONFIG.run,
            main=CONFIG.study.main.model,
            seed=CONFIG.seed,
            answers=CONFIG.explorer.answers,
            words=WORDS["explorer"],
        ),
    message:
        "Making the answer explorer"
    script:
        "../workflow_scripts/explore/make_explorer.py"


# Guarantees are those of TRACE+, which a run may leave out.
TOLD = ["accuracy", "averages", "comparisons", "improvements", "position_shift"]
TOLD += [
    name
    for name in ("risk_coverage", "localisation", "early_doubt", "cascades")
    if name in PLAN.tables
]


rule tell_findings:
    input:
        **{name: f"<results>/analyses/{name}.parquet" for name in TOLD},
    output:
        "<results>/findings.txt",
    log:
        "<logs>/tell_findings.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "explore/tell_findings.py",
            estimators=entries(RUN.chosen),
            settings=PLAN.findings(),
        ),
    message:
        "Summarising the findings"
    script:
        "../workflow_scripts/explore/tell_findings.py"
