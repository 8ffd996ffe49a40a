# Answers that were made elsewhere: their traces read from files, or replayed by the model.
# reads   the files of models' source.answers, tasks/{task}.parquet; to replay models/{model}/,
#         work/revisions/{model}.txt
# writes  traces/{model}/{task}.arrow, work/answered/{model}/{task}.parquet

from tracecal.tasks.prepared import digest_given

LOGGED_MODELS = sorted(slug for slug in ANSWERED_MODELS if not MODELS[slug].source.weights)
REPLAYED_MODELS = sorted({*ANSWERED_MODELS} - {*LOGGED_MODELS})


# A model's answers to a task; what the file holds says whether they changed, not its time.
ANSWERS_FILE = lambda wildcards: MODELS[wildcards.model].source.answers.format(task=wildcards.task)
READING_ANSWERS = {
    "reading": lambda wildcards: MODELS[wildcards.model].source.read_as.model_dump_json(),
    "held": lambda wildcards: or_stop(digest_given, ANSWERS_FILE(wildcards)),
}
# `questions` are the task's rows; those that the file has no usable answer to are 'unanswered'.
READ_TO = {
    "traces": "<results>/traces/{model}/{task}.arrow",
    "questions": "<results>/work/answered/{model}/{task}.parquet",
}


localrules:
    read_answers,


rule read_answers:
    input:
        answers=lambda wildcards: ancient(ANSWERS_FILE(wildcards)),
        task="<results>/tasks/{task}.parquet",
    output:
        **READ_TO,
    log:
        "<logs>/read_answers/{model}/{task}.log",
    wildcard_constraints:
        model=one_of(LOGGED_MODELS),
        task=one_of(WHOLE_TASKS),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "answers/read_answers.py",
            **READING_ANSWERS,
        ),
    message:
        "Reading the answers of {wildcards.model} to {wildcards.task}"
    script:
        "../workflow_scripts/answers/read_answers.py"


rule replay_answers:
    input:
        **MODEL_FILES,
        answers=lambda wildcards: ancient(ANSWERS_FILE(wildcards)),
        task="<results>/tasks/{task}.parquet",
    output:
        **READ_TO,
    log:
        "<logs>/replay_answers/{model}/{task}.log",
    wildcard_constraints:
        model=one_of(REPLAYED_MODELS),
        task=one_of(WHOLE_TASKS),
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(),
    params:
        **settings(
            "answers/replay_answers.py",
            **READING_ANSWERS,
            journal=f"{JOURNALS}/replayed/{{model}}/{{task}}",
            seed=CONFIG.seed,
            loading=of_job("loading"),
            end_token=lambda wildcards: MODELS[wildcards.model].source.end_token,
        ),
    message:
        "Replaying the answers of {wildcards.model} to {wildcards.task}"
    script:
        "../workflow_scripts/answers/replay_answers.py"
