# Everything that runs a language model: answers with their traces, their audit, beams,
# samples, states.
# reads   models/{model}/, work/revisions/{model}.txt, tasks/{task}.parquet
# writes  traces/{model}/{task}.arrow, audits/{model}/{task}.json, beams/{model}/{task}.arrow,
#         samples/{model}/{task}.arrow, hidden/{model}/{task}.arrow


localrules:
    gather_shards,


rule generate:
    input:
        model="<results>/models/{model}",
        revision="<results>/work/revisions/{model}.txt",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/traces/{model}/{task}.arrow",
    log:
        "<logs>/generate/{model}/{task}.log",
    benchmark:
        "<benchmarks>/generate/{model}/{task}.tsv"
    wildcard_constraints:
        model=one_of(WHOLE),
    conda:
        "../envs/inference.yaml"
    # Resources, not parameters: another batch size or placement changes no result.
    resources:
        **asks(model_needs),
        batch_size=lambda wildcards: MODELS[wildcards.model].batch_size,
        device_map=device_map,
    params:
        code=code("generate.py"),
        journal=journal("traces"),
        asking=lambda wildcards: TASKS[wildcards.task].part(Asking),
        loading=lambda wildcards: MODELS[wildcards.model].loading,
        chat=lambda wildcards: MODELS[wildcards.model].chat,
        seed=CONFIG.seed,
    message:
        "Decoding {wildcards.task} with {wildcards.model}"
    script:
        "../workflow_scripts/generate.py"


use rule generate as generate_shard with:
    output:
        "<results>/work/shards/traces/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/generate/{model}/{task}.{shard}.log",
    benchmark:
        "<benchmarks>/generate/{model}/{task}.{shard}.tsv"
    wildcard_constraints:
        model=one_of(SHARDED),


rule audit_traces:
    input:
        model="<results>/models/{model}",
        traces="<results>/traces/{model}/{task}.arrow",
    output:
        "<results>/audits/{model}/{task}.json",
    log:
        "<logs>/audit_traces/{model}/{task}.log",
    benchmark:
        "<benchmarks>/audit_traces/{model}/{task}.tsv"
    conda:
        "../envs/inference.yaml"
    resources:
        **asks(model_needs, share=0.5),
        device_map=device_map,
    params:
        code=code("audit_traces.py"),
        loading=lambda wildcards: MODELS[wildcards.model].loading,
        answers=CONFIG.audit.answers,
        tolerance=lambda wildcards: CONFIG.audit.tolerance[MODELS[wildcards.model].dtype],
    message:
        "Auditing the traces of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/audit_traces.py"


rule search_beams:
    input:
        model="<results>/models/{model}",
        revision="<results>/work/revisions/{model}.txt",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/beams/{model}/{task}.arrow",
    log:
        "<logs>/search_beams/{model}/{task}.log",
    benchmark:
        "<benchmarks>/search_beams/{model}/{task}.tsv"
    wildcard_constraints:
        model=one_of(WHOLE),
    conda:
        "../envs/inference.yaml"
    resources:
        **asks(model_needs, share=2),
        batch_size=lambda wildcards: MODELS[wildcards.model].batch_size,
        device_map=device_map,
    params:
        code=code("search_beams.py"),
        journal=journal("beams"),
        asking=lambda wildcards: TASKS[wildcards.task].part(Asking),
        loading=lambda wildcards: MODELS[wildcards.model].loading,
        chat=lambda wildcards: MODELS[wildcards.model].chat,
        width=CONFIG.beams.width,
        seed=CONFIG.seed,
    message:
        "Searching beams of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/search_beams.py"


use rule search_beams as search_beams_shard with:
    output:
        "<results>/work/shards/beams/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/search_beams/{model}/{task}.{shard}.log",
    benchmark:
        "<benchmarks>/search_beams/{model}/{task}.{shard}.tsv"
    wildcard_constraints:
        model=one_of(SHARDED),


# Of the prompts that were answered, so that both roles are there and nothing is asked anew.
rule capture_hidden:
    input:
        model="<results>/models/{model}",
        revision="<results>/work/revisions/{model}.txt",
        traces="<results>/traces/{model}/{task}.arrow",
    output:
        "<results>/hidden/{model}/{task}.arrow",
    log:
        "<logs>/capture_hidden/{model}/{task}.log",
    benchmark:
        "<benchmarks>/capture_hidden/{model}/{task}.tsv"
    wildcard_constraints:
        model=one_of(WHOLE),
    conda:
        "../envs/inference.yaml"
    resources:
        **asks(model_needs, share=0.5),
        batch_size=lambda wildcards: MODELS[wildcards.model].batch_size,
        device_map=device_map,
    params:
        code=code("capture_hidden.py"),
        journal=journal("hidden"),
        loading=lambda wildcards: MODELS[wildcards.model].loading,
        depth=CONFIG.probe.depth,
        seed=CONFIG.seed,
    message:
        "Capturing hidden states of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/capture_hidden.py"


use rule capture_hidden as capture_hidden_shard with:
    output:
        "<results>/work/shards/hidden/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/capture_hidden/{model}/{task}.{shard}.log",
    benchmark:
        "<benchmarks>/capture_hidden/{model}/{task}.{shard}.tsv"
    wildcard_constraints:
        model=one_of(SHARDED),


rule draw_samples:
    input:
        model="<results>/models/{model}",
        revision="<results>/work/revisions/{model}.txt",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/samples/{model}/{task}.arrow",
    log:
        "<logs>/draw_samples/{model}/{task}.log",
    benchmark:
        "<benchmarks>/draw_samples/{model}/{task}.tsv"
    wildcard_constraints:
        model=one_of(WHOLE),
    conda:
        "../envs/inference.yaml"
    resources:
        **asks(model_needs, share=2),
        batch_size=lambda wildcards: MODELS[wildcards.model].batch_size,
        device_map=device_map,
    params:
        code=code("draw_samples.py"),
        journal=journal("samples"),
        asking=lambda wildcards: TASKS[wildcards.task].part(Asking),
        loading=lambda wildcards: MODELS[wildcards.model].loading,
        chat=lambda wildcards: MODELS[wildcards.model].chat,
        answers=CONFIG.sampling.answers,
        temperature=CONFIG.sampling.temperature,
        seed=CONFIG.seed,
    message:
        "Sampling answers of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/draw_samples.py"


use rule draw_samples as draw_samples_shard with:
    output:
        "<results>/work/shards/samples/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/draw_samples/{model}/{task}.{shard}.log",
    benchmark:
        "<benchmarks>/draw_samples/{model}/{task}.{shard}.tsv"
    wildcard_constraints:
        model=one_of(SHARDED),


rule gather_shards:
    input:
        shards_of,
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
        code=code("gather_shards.py"),
    message:
        "Gathering {wildcards.kind} of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/gather_shards.py"
