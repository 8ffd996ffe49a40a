# The answer explorer: every answer with its trace and its score by each estimator.
# reads   traces/, tasks/, labels/, scores/, predictions/
# writes  explorer.html

from tracecal.explore.page import SOURCES


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
        seed=CONFIG.seed,
        answers=CONFIG.explorer.answers,
        words=WORDS["explorer"],
    message:
        "Making the answer explorer"
    script:
        "../workflow_scripts/explore/make_explorer.py"
