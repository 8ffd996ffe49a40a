# What a language model computes: answers with their traces, their audit, beams, samples, hidden
# states. Answers made elsewhere are read or replayed; parts of answers are cut from their traces.
#
# generate        models/{model}/, tasks/{task}.parquet              -> traces/{model}/{task}.arrow
# audit_traces    models/{model}/, traces/                           -> audits/{model}/{task}.json
# search_beams    models/{model}/, rows of the task, or a subset     -> beams/{model}/{task}.arrow
# draw_samples    models/{model}/, rows of the task, or a subset     -> samples/{model}/{task}.arrow
# capture_hidden  models/{model}/, traces/, rows or a subset         -> hidden/{model}/{task}.arrow
# gather_shards   work/shards/{number}-of-{count}/<any of these>     -> the same file without its folder
# read_answers    the files of a model's source.answers, tasks/      -> traces/, work/answered/
# replay_answers  the same, and models/{model}/                      -> traces/, work/answered/
# cut_parts       traces/ and rows of the whole answers, tasks/      -> traces/, work/answered/
#
# What runs a language model also reads work/revisions/{model}.txt. Of a model with `shards`, and of what it is
# asked (ask.smk), several jobs write a task's files in parts, which are gathered.

from trace_workflow.config.task_digests import digest_of_file

# Models whose answers and samples vLLM decodes, in an environment of its own.
VLLM_MODELS = sorted(slug for slug, model in MODELS.items() if model.engine == "vllm")
if VLLM_MODELS:
    logger.warning(
        f"vLLM decodes the answers and samples of {', '.join(VLLM_MODELS)}; what it does not give stays "
        "with Transformers: the audit, beams, hidden states, P(True) and verbalized confidence"
    )

VLLM = "vllm " + re.search(r"vllm==(\S+)", (ROOT / "envs/vllm.yaml").read_text())[1]


ruleorder: gather_shards > generate > search_beams > capture_hidden > draw_samples
ruleorder: gather_shards > ask_p_true > ask_verbalized


localrules:
    cut_parts,
    gather_shards,
    read_answers,


rule generate:
    input:
        **MODEL_FILES,
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/{shard}traces/{model}/{task}.arrow",
    log:
        "<logs>/generate/{model}/{shard}{task}.log",
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
        task=one_of(WHOLE_TASKS),
    # Everything else waits for answers: the longest of these jobs would run alone at the end.
    priority: 1
    conda:
        environment_of_engine
    resources:
        **requests(),
        template=lambda wildcards: int(MODELS[wildcards.model].chat is True),
    params:
        **settings(
            "generate.py",
            loads=engine_modules,
            **PROMPTING,
            engine=engine_version,
            journal=f"{JOURNALS}/traces/{{model}}/{{task}}",
            asking=task_settings(PromptSettings),
        ),
    message:
        "Decoding {wildcards.task} with {wildcards.model}"
    script:
        "../workflow_scripts/generate.py"


rule audit_traces:
    input:
        model="<results>/models/{model}",
        traces="<results>/traces/{model}/{task}.arrow",
    output:
        "<results>/audits/{model}/{task}.json",
    log:
        "<logs>/audit_traces/{model}/{task}.log",
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(share=0.5),
    params:
        **settings(
            "audit_traces.py",
            loading=model_setting("loading"),
            answers=CONFIG.audit.answers,
            tolerance=lambda wildcards: CONFIG.audit.tolerance[MODELS[wildcards.model].dtype],
        ),
    message:
        "Auditing the traces of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/audit_traces.py"


rule search_beams:
    input:
        **MODEL_FILES,
        task=rows_of_subset,
    output:
        "<results>/{shard}beams/{model}/{task}.arrow",
    log:
        "<logs>/search_beams/{model}/{shard}{task}.log",
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(share=2),
    params:
        **settings(
            "search_beams.py",
            **PROMPTING,
            journal=f"{JOURNALS}/beams/{{model}}/{{task}}",
            asking=task_settings(PromptSettings),
            width=CONFIG.beams.width,
        ),
    message:
        "Searching beams of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/search_beams.py"


# For the prompts of the traces, so that both roles are there and no prompt is made again.
rule capture_hidden:
    input:
        **MODEL_FILES,
        traces="<results>/traces/{model}/{task}.arrow",
        task=rows_of_subset,
    output:
        "<results>/{shard}hidden/{model}/{task}.arrow",
    log:
        "<logs>/capture_hidden/{model}/{shard}{task}.log",
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(share=0.5),
    params:
        **settings(
            "capture_hidden.py",
            journal=f"{JOURNALS}/hidden/{{model}}/{{task}}",
            loading=model_setting("loading"),
            depth=CONFIG.probe.depth,
            seed=CONFIG.seed,
        ),
    message:
        "Capturing hidden states of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/capture_hidden.py"


rule draw_samples:
    input:
        **MODEL_FILES,
        task=rows_of_subset,
    output:
        "<results>/{shard}samples/{model}/{task}.arrow",
    log:
        "<logs>/draw_samples/{model}/{shard}{task}.log",
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
    conda:
        environment_of_engine
    resources:
        **requests(share=2),
    params:
        **settings(
            "draw_samples.py",
            loads=engine_modules,
            **PROMPTING,
            engine=engine_version,
            journal=f"{JOURNALS}/samples/{{model}}/{{task}}",
            asking=task_settings(PromptSettings),
            answers=CONFIG.sampling.answers,
            temperature=CONFIG.sampling.temperature,
        ),
    message:
        "Sampling answers of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/draw_samples.py"


rule gather_shards:
    input:
        shards_of_file,
    output:
        "<results>/{kind}/{model}/{task}.arrow",
    log:
        "<logs>/gather_shards/{kind}/{model}/{task}.log",
    wildcard_constraints:
        kind=one_of(["traces", "beams", "samples", "hidden", "asked/p_true", "asked/verbalized"]),
        model=one_of(slug for slug in DECODED_MODELS if MODELS[slug].shards > 1),
        task=one_of(WHOLE_TASKS),
    conda:
        "../envs/inference.yaml"
    params:
        **settings("gather_shards.py"),
    message:
        "Gathering {wildcards.kind} of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/gather_shards.py"


LOGGED_MODELS = sorted(slug for slug in ANSWERED_MODELS if not MODELS[slug].source.weights)
REPLAYED_MODELS = sorted({*ANSWERED_MODELS} - {*LOGGED_MODELS})


# What a file of answers holds, and not its time, says whether it changed.
READING_ANSWERS = {
    "reading": lambda wildcards: CONFIG.reading(wildcards.model).model_dump_json(),
    "digest": lambda wildcards: shared_digest(digest_of_file, answers_file(wildcards)),
}
# `questions` are the task's rows; those that the file has no usable answer to are 'unanswered'.
TRACES_AND_QUESTIONS = {
    "traces": "<results>/traces/{model}/{task}.arrow",
    "questions": "<results>/work/answered/{model}/{task}.parquet",
}


rule read_answers:
    input:
        answers=lambda wildcards: ancient(local(answers_file(wildcards))),
        task="<results>/tasks/{task}.parquet",
    output:
        **TRACES_AND_QUESTIONS,
    log:
        "<logs>/read_answers/{model}/{task}.log",
    wildcard_constraints:
        model=one_of(LOGGED_MODELS),
        task=one_of(WHOLE_TASKS),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "read_answers.py",
            **READING_ANSWERS,
        ),
    message:
        "Reading the answers of {wildcards.model} to {wildcards.task}"
    script:
        "../workflow_scripts/read_answers.py"


rule replay_answers:
    input:
        **MODEL_FILES,
        answers=lambda wildcards: ancient(local(answers_file(wildcards))),
        task="<results>/tasks/{task}.parquet",
    output:
        **TRACES_AND_QUESTIONS,
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
            "replay_answers.py",
            **READING_ANSWERS,
            journal=f"{JOURNALS}/replayed/{{model}}/{{task}}",
            seed=CONFIG.seed,
            loading=model_setting("loading"),
            end_token=lambda wildcards: MODELS[wildcards.model].source.end_token,
        ),
    message:
        "Replaying the answers of {wildcards.model} to {wildcards.task}"
    script:
        "../workflow_scripts/replay_answers.py"


rule cut_parts:
    input:
        traces=traces_of_whole_answers,
        questions=rows_of_whole_answers,
        task="<results>/tasks/{task}.parquet",
    output:
        **TRACES_AND_QUESTIONS,
    log:
        "<logs>/cut_parts/{model}/{task}.log",
    wildcard_constraints:
        task=one_of(PARENTS),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "cut_parts.py",
            parts=lambda wildcards: TASKS[wildcards.task].parts.model_dump_json(by_alias=True),
            # Of the answers: what stands behind the end of one is in no part.
            stop=lambda wildcards: list(TASKS[PARENTS[wildcards.task]].stop),
        ),
    message:
        "Cutting {wildcards.task} from the answers of {wildcards.model}"
    script:
        "../workflow_scripts/cut_parts.py"
