# What a language model computes: answers with their traces, their audit, beams, samples, hidden
# states. Answers made elsewhere are read or replayed; parts of answers are cut from their traces.
#
# generate        models/{model}/, tasks/{task}.parquet              -> traces/{model}/{task}.arrow
# audit_traces    models/{model}/, traces/                           -> audits/{model}/{task}.json
# search_beams    models/{model}/, rows of the task, or a subset     -> beams/{model}/{task}.arrow
# draw_samples    models/{model}/, rows of the task, or a subset     -> samples/{model}/{task}.arrow
# capture_hidden  models/{model}/, traces/, rows or a subset         -> hidden/{model}/{task}.arrow
# gather_shards   work/shards/{number}-of-{count}/<any of these>     -> the same file without its folder
# gather_replayed the same of answers that several jobs replay       -> traces/, work/answered/
# read_answers    the files of a model's source.answers, tasks/      -> traces/, work/answered/
# replay_answers  the same, and models/{model}/                      -> traces/, work/answered/
# cut_parts       traces/ and rows of the whole answers, tasks/      -> traces/, work/answered/
#
# What runs a language model also reads work/revisions/{model}.txt. Of a model with `shards`, several jobs write
# each of a task's files in parts, which are gathered; so they do in ask.smk and encoders.smk.

from trace_workflow.config.task_digests import digest_of_file

# Models whose answers and samples vLLM decodes, in an environment of its own.
VLLM_MODELS = sorted(slug for slug, model in MODELS.items() if model.engine == "vllm")
if VLLM_MODELS:
    logger.warning(
        f"vLLM decodes the answers and samples of {', '.join(VLLM_MODELS)}; what it does not give stays "
        "with Transformers: the audit, beams, hidden states, P(True) and verbalized confidence"
    )

VLLM = "vllm " + re.search(r"vllm==(\S+)", (ROOT / "envs/vllm.yaml").read_text())[1]


# The files that jobs of a model with `shards` write in parts.
SHARED_KINDS = ["traces", "beams", "samples", "hidden", "asked/p_true", "asked/verbalized"]
SHARED_KINDS += ["weights/token_sar", "weights/mars", "comparisons"]


ruleorder: read_answers > gather_replayed > replay_answers > cut_parts > gather_shards
ruleorder: gather_shards > generate > search_beams > capture_hidden > draw_samples
ruleorder: gather_shards > ask_p_true > ask_verbalized
ruleorder: gather_shards > weigh_token_sar > weigh_mars > compare_samples


rule generate:
    """Decode the answers of a model to a task, with their traces."""
    input:
        **MODEL_FILES,
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/{shard}traces/{model}/{task}.arrow",
    log:
        "<logs>/generate/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/generate/{model}/{shard}{task}.tsv"
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
        task=one_of(WHOLE_TASKS),
    # Everything else waits for answers: the longest of these jobs would run alone at the end.
    priority: 1
    retries: MEMORY_RETRIES
    conda:
        environment_of_engine
    threads: model_setting("threads")
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
    script:
        "../workflow_scripts/generate.py"


rule audit_traces:
    """Compare a sample of traces with a second reading of the same answers."""
    input:
        model="<results>/models/{model}",
        traces="<results>/traces/{model}/{task}.arrow",
    output:
        "<results>/audits/{model}/{task}.json",
    log:
        "<logs>/audit_traces/{model}/{task}.log",
    benchmark:
        "<benchmarks>/audit_traces/{model}/{task}.tsv"
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    threads: model_setting("threads")
    resources:
        **requests(share=0.5),
    params:
        **settings(
            "audit_traces.py",
            loading=model_setting("loading"),
            answers=CONFIG.audit.answers,
            tolerance=lambda wildcards: CONFIG.audit.tolerance[MODELS[wildcards.model].dtype],
        ),
    script:
        "../workflow_scripts/audit_traces.py"


rule search_beams:
    """Search the beams of a model on a task."""
    input:
        **MODEL_FILES,
        task=rows_of_subset,
    output:
        "<results>/{shard}beams/{model}/{task}.arrow",
    log:
        "<logs>/search_beams/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/search_beams/{model}/{shard}{task}.tsv"
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    threads: model_setting("threads")
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
    script:
        "../workflow_scripts/search_beams.py"


# For the prompts of the traces, so that both roles are there and no prompt is made again.
rule capture_hidden:
    """Capture the hidden states of a model at its answers to a task."""
    input:
        **MODEL_FILES,
        traces="<results>/traces/{model}/{task}.arrow",
        task=rows_of_subset,
    output:
        "<results>/{shard}hidden/{model}/{task}.arrow",
    log:
        "<logs>/capture_hidden/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/capture_hidden/{model}/{shard}{task}.tsv"
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    threads: model_setting("threads")
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
    script:
        "../workflow_scripts/capture_hidden.py"


rule draw_samples:
    """Sample further answers of a model to a task."""
    input:
        **MODEL_FILES,
        task=rows_of_subset,
    output:
        "<results>/{shard}samples/{model}/{task}.arrow",
    log:
        "<logs>/draw_samples/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/draw_samples/{model}/{shard}{task}.tsv"
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
    retries: MEMORY_RETRIES
    conda:
        environment_of_engine
    threads: model_setting("threads")
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
    script:
        "../workflow_scripts/draw_samples.py"


rule gather_shards:
    """Gather the parts of a file that several jobs made."""
    input:
        traces=shards_of_file("{kind}/{model}/{task}.arrow"),
    output:
        "<results>/{kind}/{model}/{task}.arrow",
    log:
        "<logs>/gather_shards/{kind}/{model}/{task}.log",
    wildcard_constraints:
        kind=one_of(SHARED_KINDS),
        model=one_of(slug for slug in MODELS if MODELS[slug].shards > 1),
    localrule: True
    conda:
        "../envs/inference.yaml"
    params:
        **settings("gather_shards.py"),
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
    """Read the answers of a model, made elsewhere, with their traces."""
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
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "read_answers.py",
            **READING_ANSWERS,
        ),
    script:
        "../workflow_scripts/read_answers.py"


rule replay_answers:
    """Compute the traces of answers that were made elsewhere."""
    input:
        **MODEL_FILES,
        answers=lambda wildcards: ancient(local(answers_file(wildcards))),
        task="<results>/tasks/{task}.parquet",
    output:
        traces="<results>/{shard}traces/{model}/{task}.arrow",
        questions="<results>/{shard}work/answered/{model}/{task}.parquet",
    log:
        "<logs>/replay_answers/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/replay_answers/{model}/{shard}{task}.tsv"
    wildcard_constraints:
        model=one_of(REPLAYED_MODELS),
        task=one_of(WHOLE_TASKS),
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    threads: model_setting("threads")
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
    script:
        "../workflow_scripts/replay_answers.py"


use rule gather_shards as gather_replayed with:
    """Gather the traces of answers that several jobs replayed."""
    input:
        traces=shards_of_file("traces/{model}/{task}.arrow"),
        questions=shards_of_file("work/answered/{model}/{task}.parquet"),
    output:
        **TRACES_AND_QUESTIONS,
    log:
        "<logs>/gather_replayed/{model}/{task}.log",
    wildcard_constraints:
        model=one_of(slug for slug in REPLAYED_MODELS if MODELS[slug].shards > 1),
    localrule: True


rule cut_parts:
    """Cut the traces of answers into those of their parts."""
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
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "cut_parts.py",
            parts=lambda wildcards: TASKS[wildcards.task].parts.model_dump_json(by_alias=True),
            # Of the answers: what stands behind the end of one is in no part.
            stop=lambda wildcards: list(TASKS[PARENTS[wildcards.task]].stop),
        ),
    script:
        "../workflow_scripts/cut_parts.py"
