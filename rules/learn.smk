# Supervised estimators, trained once per model on the rows of role 'training' of all its tasks.
# Training and scoring share a job, as loading the libraries takes longer than either.
# A new task with such rows is new training data: the model's supervised estimators are trained
# again and score all its answers again. Nothing is decoded again. Every task is an input, also
# one without such rows: its evaluation examples must not be among the training rows.
# reads   hidden/, traces/, labels/, tasks/, models/{model}/, encoders/lars/
# writes  work/learned/{internal_probe,lars}/{model}/, work/learned/scores/{family}/{model}.parquet


rule learn_probe:
    input:
        hidden=pairs("<results>/hidden/{model}/{task}.arrow", "whole"),
        labels=pairs("<results>/labels/{model}/{task}.parquet", "whole"),
        tasks=pairs("<results>/tasks/{task}.parquet", "whole"),
    output:
        learned=directory("<results>/work/learned/internal_probe/{model}"),
        scores="<results>/work/learned/scores/internal_probe/{model}.parquet",
    log:
        "<logs>/learn_probe/{model}.log",
    conda:
        "../envs/inference.yaml"
    threads: 1
    resources:
        **requests(most_gpus=1),
    params:
        **settings(
            "learn/learn_probe.py",
            expansion=CONFIG.probe.expansion,
            fitting=CONFIG.probe.fitting.model_dump() | {"seed": CONFIG.seed},
        ),
    message:
        "Training the internal-state probe of {wildcards.model}"
    script:
        "../workflow_scripts/learn/learn_probe.py"


rule learn_lars:
    input:
        # No folder if a small encoder is trained from scratch on the model's own tokens.
        encoder=[] if CONFIG.lars.encoder.source.train else "<results>/encoders/lars",
        model="<results>/models/{model}",
        traces=pairs("<results>/traces/{model}/{task}.arrow", "whole"),
        labels=pairs("<results>/labels/{model}/{task}.parquet", "whole"),
        tasks=pairs("<results>/tasks/{task}.parquet", "whole"),
    output:
        learned=directory("<results>/work/learned/lars/{model}"),
        scores="<results>/work/learned/scores/lars/{model}.parquet",
    log:
        "<logs>/learn_lars/{model}.log",
    conda:
        "../envs/inference.yaml"
    threads: 1
    resources:
        **requests(most_gpus=1),
    params:
        **settings(
            "learn/learn_lars.py",
            small=CONFIG.lars.encoder.source.model_dump()["train"],
            trained=CONFIG.lars.encoder.trained,
            bins=CONFIG.lars.bins,
            fitting=CONFIG.lars.fitting.model_dump() | {"seed": CONFIG.seed},
        ),
    message:
        "Training the LARS scorer of {wildcards.model}"
    script:
        "../workflow_scripts/learn/learn_lars.py"
