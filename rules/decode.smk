# What a language model computes: answers with their traces, their audit, beams, samples, hidden
# states.
# reads   models/{model}/, work/revisions/{model}.txt, tasks/{task}.parquet
# writes  traces/{model}/{task}.arrow, audits/{model}/{task}.json, beams/{model}/{task}.arrow,
#         samples/{model}/{task}.arrow, hidden/{model}/{task}.arrow
#
# Of a model with `shards`, and of what it is asked (ask.smk), several jobs write a task's files in
# parts, such as work/shards/1-of-4/traces/{model}/{task}.arrow, which are gathered.

# Models whose answers and samples vLLM decodes, in an environment of its own.
VLLM_MODELS = sorted(slug for slug, model in MODELS.items() if model.engine == "vllm")
if VLLM_MODELS:
    logger.warning(
        f"vLLM decodes the answers and samples of {', '.join(VLLM_MODELS)}; what it does not give stays "
        "with Transformers: the audit, beams, hidden states, P(True) and verbalized confidence"
    )

VLLM = "vllm " + re.search(r"vllm==(\S+)", (ROOT / "envs/vllm.yaml").read_text())[1]


# For a rule that vLLM can do: its environment, the modules that it loads by name, its version.
ENGINES = (
    lambda wildcards: f"../envs/{'vllm' if wildcards.model in VLLM_MODELS else 'inference'}.yaml"
)
ENGINE_MODULES = lambda wildcards: (
    ["tracecal.decode.vllm_engine", "tracecal.decode.vllm_capture"]
    if wildcards.model in VLLM_MODELS
    else []
)
ENGINE = lambda wildcards: VLLM if wildcards.model in VLLM_MODELS else None


ruleorder: gather_shards > generate > search_beams > capture_hidden > draw_samples
ruleorder: gather_shards > ask_p_true > ask_verbalized


localrules:
    gather_shards,


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
        ENGINES
    resources:
        **requests(),
        template=lambda wildcards: int(MODELS[wildcards.model].chat is True),
    params:
        **settings(
            "decode/generate.py",
            loads=ENGINE_MODULES,
            **PROMPTING,
            engine=ENGINE,
            journal=f"{JOURNALS}/traces/{{model}}/{{task}}",
            asking=of_job(Asking),
        ),
    message:
        "Decoding {wildcards.task} with {wildcards.model}"
    script:
        "../workflow_scripts/decode/generate.py"


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
            "decode/audit_traces.py",
            loading=of_job("loading"),
            answers=CONFIG.audit.answers,
            tolerance=lambda wildcards: CONFIG.audit.tolerance[MODELS[wildcards.model].dtype],
        ),
    message:
        "Auditing the traces of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/audit_traces.py"


rule search_beams:
    input:
        **MODEL_FILES,
        task=subset,
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
            "decode/search_beams.py",
            **PROMPTING,
            journal=f"{JOURNALS}/beams/{{model}}/{{task}}",
            asking=of_job(Asking),
            width=CONFIG.beams.width,
        ),
    message:
        "Searching beams of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/search_beams.py"


# For the prompts of the traces, so that both roles are there and no prompt is made again.
rule capture_hidden:
    input:
        **MODEL_FILES,
        traces="<results>/traces/{model}/{task}.arrow",
        task=subset,
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
            "decode/capture_hidden.py",
            journal=f"{JOURNALS}/hidden/{{model}}/{{task}}",
            loading=of_job("loading"),
            depth=CONFIG.probe.depth,
            seed=CONFIG.seed,
        ),
    message:
        "Capturing hidden states of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/capture_hidden.py"


rule draw_samples:
    input:
        **MODEL_FILES,
        task=subset,
    output:
        "<results>/{shard}samples/{model}/{task}.arrow",
    log:
        "<logs>/draw_samples/{model}/{shard}{task}.log",
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
    conda:
        ENGINES
    resources:
        **requests(share=2),
    params:
        **settings(
            "decode/draw_samples.py",
            loads=ENGINE_MODULES,
            **PROMPTING,
            engine=ENGINE,
            journal=f"{JOURNALS}/samples/{{model}}/{{task}}",
            asking=of_job(Asking),
            answers=CONFIG.sampling.answers,
            temperature=CONFIG.sampling.temperature,
        ),
    message:
        "Sampling answers of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/draw_samples.py"


rule gather_shards:
    input:
        lambda wildcards: expand(
            "<results>/work/shards/{number}-of-{count}/{{kind}}/{{model}}/{{task}}.arrow",
            number=range(1, MODELS[wildcards.model].shards + 1),
            count=MODELS[wildcards.model].shards,
        ),
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
        **settings("decode/gather_shards.py"),
    message:
        "Gathering {wildcards.kind} of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/gather_shards.py"
