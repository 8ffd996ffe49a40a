# What a language model computes: answers with their traces, their audit, beams, samples, hidden
# states.
# reads   models/{model}/, work/revisions/{model}.txt, tasks/{task}.parquet
# writes  traces/{model}/{task}.arrow, audits/{model}/{task}.json, beams/{model}/{task}.arrow,
#         samples/{model}/{task}.arrow, hidden/{model}/{task}.arrow


localrules:
    gather_shards,


rule generate:
    input:
        **MODEL_FILES,
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/traces/{model}/{task}.arrow",
    log:
        "<logs>/generate/{model}/{task}.log",
    wildcard_constraints:
        model=one_of({*WHOLE} - {*SERVED}),
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(),
        template=lambda wildcards: int(MODELS[wildcards.model].chat is True),
    params:
        **PROMPTING,
        code=code("decode/generate.py"),
        journal=f"{JOURNALS}/traces/{{model}}/{{task}}",
        asking=of_job(Asking),
    message:
        "Decoding {wildcards.task} with {wildcards.model}"
    script:
        "../workflow_scripts/decode/generate.py"


use rule generate as generate_shard with:
    output:
        "<results>/work/shards/traces/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/generate/{model}/{task}.{shard}.log",
    wildcard_constraints:
        model=one_of({*SHARDED} - {*SERVED}),


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
        code=code("decode/audit_traces.py"),
        loading=of_job("loading"),
        answers=CONFIG.audit.answers,
        tolerance=lambda wildcards: CONFIG.audit.tolerance[MODELS[wildcards.model].dtype],
    message:
        "Auditing the traces of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/audit_traces.py"


rule search_beams:
    input:
        **MODEL_FILES,
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/beams/{model}/{task}.arrow",
    log:
        "<logs>/search_beams/{model}/{task}.log",
    wildcard_constraints:
        model=one_of(WHOLE),
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(share=2),
    params:
        **PROMPTING,
        code=code("decode/search_beams.py"),
        journal=f"{JOURNALS}/beams/{{model}}/{{task}}",
        asking=of_job(Asking),
        width=CONFIG.beams.width,
    message:
        "Searching beams of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/search_beams.py"


use rule search_beams as search_beams_shard with:
    output:
        "<results>/work/shards/beams/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/search_beams/{model}/{task}.{shard}.log",
    wildcard_constraints:
        model=one_of(SHARDED),


# For the prompts of the traces, so that both roles are there and no prompt is made again.
rule capture_hidden:
    input:
        **MODEL_FILES,
        traces="<results>/traces/{model}/{task}.arrow",
    output:
        "<results>/hidden/{model}/{task}.arrow",
    log:
        "<logs>/capture_hidden/{model}/{task}.log",
    wildcard_constraints:
        model=one_of(WHOLE),
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(share=0.5),
    params:
        code=code("decode/capture_hidden.py"),
        journal=f"{JOURNALS}/hidden/{{model}}/{{task}}",
        loading=of_job("loading"),
        depth=CONFIG.probe.depth,
        seed=CONFIG.seed,
    message:
        "Capturing hidden states of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/capture_hidden.py"


use rule capture_hidden as capture_hidden_shard with:
    output:
        "<results>/work/shards/hidden/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/capture_hidden/{model}/{task}.{shard}.log",
    wildcard_constraints:
        model=one_of(SHARDED),


rule draw_samples:
    input:
        **MODEL_FILES,
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/samples/{model}/{task}.arrow",
    log:
        "<logs>/draw_samples/{model}/{task}.log",
    wildcard_constraints:
        model=one_of({*WHOLE} - {*SERVED}),
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(share=2),
    params:
        **PROMPTING,
        code=code("decode/draw_samples.py"),
        journal=f"{JOURNALS}/samples/{{model}}/{{task}}",
        asking=of_job(Asking),
        answers=CONFIG.sampling.answers,
        temperature=CONFIG.sampling.temperature,
    message:
        "Sampling answers of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/draw_samples.py"


use rule draw_samples as draw_samples_shard with:
    output:
        "<results>/work/shards/samples/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/draw_samples/{model}/{task}.{shard}.log",
    wildcard_constraints:
        model=one_of({*SHARDED} - {*SERVED}),


rule gather_shards:
    input:
        lambda wildcards: expand(
            "<results>/work/shards/{{kind}}/{{model}}/{{task}}/{number}-of-{count}.arrow",
            number=range(1, MODELS[wildcards.model].shards + 1),
            count=MODELS[wildcards.model].shards,
        ),
    output:
        "<results>/{kind}/{model}/{task}.arrow",
    log:
        "<logs>/gather_shards/{kind}/{model}/{task}.log",
    wildcard_constraints:
        kind=one_of(["traces", "beams", "samples", "hidden", "asked/p_true", "asked/verbalized"]),
        model=one_of(SHARDED),
    conda:
        "../envs/inference.yaml"
    params:
        code=code("decode/gather_shards.py"),
    message:
        "Gathering {wildcards.kind} of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/decode/gather_shards.py"
