# The answer explorer: every answer with its trace and its score by each estimator; and the run's
# findings in a few sentences, which the report's first page tells (report/workflow.rst).
# reads   traces/, tasks/, labels/, scores/, predictions/, analyses/
# writes  explorer.html, findings.txt

from tracecal.explore.page import SOURCES


localrules:
    tell_findings,


rule make_explorer:
    input:
        traces=pairs("<results>/traces/{model}/{task}.arrow"),
        tasks=pairs(questions),
        labels=pairs("<results>/labels/{model}/{task}.parquet"),
        scores=pairs("<results>/scores/{model}/{task}.parquet"),
        predictions=pairs("<results>/predictions/{model}/{task}.parquet"),
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
        code=code("explore/make_explorer.py"),
        page=[text_hash(source) for source in SOURCES],
        pairs=lambda wildcards: wanted_pairs(),
        estimators=entries(CHOSEN),
        models=lambda wildcards: dict(sorted(MODEL_LABELS.items())),
        tasks=lambda wildcards: TASK_LABELS,
        run=CONFIG.run,
        main=CONFIG.study.main.model,
        seed=CONFIG.seed,
        answers=CONFIG.explorer.answers,
        words=WORDS["explorer"],
    message:
        "Making the answer explorer"
    script:
        "../workflow_scripts/explore/make_explorer.py"


rule tell_findings:
    input:
        accuracy="<results>/analyses/accuracy.parquet",
        averages="<results>/analyses/averages.parquet",
        improvements="<results>/analyses/improvements.parquet",
    output:
        "<results>/findings.txt",
    log:
        "<logs>/tell_findings.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("explore/tell_findings.py"),
        estimators=entries(CHOSEN),
        settings={
            "models": MODEL_LABELS,
            "tasks": TASK_LABELS,
            "studies": {"main": STUDY["main"]},
            "more": MADE["main_comparison"]["more"],
        },
    message:
        "Telling what the run found"
    script:
        "../workflow_scripts/explore/tell_findings.py"
