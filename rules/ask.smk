# What a model is asked about its own answers. Two rules, so that a change to one question never
# puts the other again.
# reads   models/{model}/, work/revisions/{model}.txt, traces/, tasks/
# writes  asked/{p_true,verbalized}/{model}/{task}.arrow


rule ask_p_true:
    input:
        model="<results>/models/{model}",
        revision="<results>/work/revisions/{model}.txt",
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/asked/p_true/{model}/{task}.arrow",
    log:
        "<logs>/ask_p_true/{model}/{task}.log",
    benchmark:
        "<benchmarks>/ask_p_true/{model}/{task}.tsv"
    wildcard_constraints:
        model=one_of(WHOLE),
    conda:
        "../envs/inference.yaml"
    resources:
        **asks(model_needs, share=0.5),
        batch_size=lambda wildcards: MODELS[wildcards.model].batch_size,
        device_map=device_map,
    params:
        code=code("ask_p_true.py"),
        journal=journal("asked/p_true"),
        # Functions, as Snakemake would take the fields of a plain text for wildcards.
        prompt=lambda wildcards: CONFIG.self_evaluation.p_true_prompt,
        start=lambda wildcards: CONFIG.self_evaluation.p_true_start,
        stop=lambda wildcards: list(TASKS[wildcards.task].stop),
        loading=lambda wildcards: MODELS[wildcards.model].loading,
        chat=lambda wildcards: MODELS[wildcards.model].chat,
        seed=CONFIG.seed,
    message:
        "Letting {wildcards.model} judge its answers to {wildcards.task}"
    script:
        "../workflow_scripts/ask_p_true.py"


use rule ask_p_true as ask_p_true_shard with:
    output:
        "<results>/work/shards/asked/p_true/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/ask_p_true/{model}/{task}.{shard}.log",
    benchmark:
        "<benchmarks>/ask_p_true/{model}/{task}.{shard}.tsv"
    wildcard_constraints:
        model=one_of(SHARDED),


rule ask_verbalized:
    input:
        model="<results>/models/{model}",
        revision="<results>/work/revisions/{model}.txt",
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/asked/verbalized/{model}/{task}.arrow",
    log:
        "<logs>/ask_verbalized/{model}/{task}.log",
    benchmark:
        "<benchmarks>/ask_verbalized/{model}/{task}.tsv"
    wildcard_constraints:
        model=one_of(WHOLE),
    conda:
        "../envs/inference.yaml"
    resources:
        **asks(model_needs),
        batch_size=lambda wildcards: MODELS[wildcards.model].batch_size,
        device_map=device_map,
    params:
        code=code("ask_verbalized.py"),
        journal=journal("asked/verbalized"),
        prompt=lambda wildcards: CONFIG.self_evaluation.verbalized_prompt,
        asking=lambda wildcards: TASKS[wildcards.task].part(Asking),
        loading=lambda wildcards: MODELS[wildcards.model].loading,
        chat=lambda wildcards: MODELS[wildcards.model].chat,
        seed=CONFIG.seed,
    message:
        "Asking {wildcards.model} how sure it is of its answers to {wildcards.task}"
    script:
        "../workflow_scripts/ask_verbalized.py"


use rule ask_verbalized as ask_verbalized_shard with:
    output:
        "<results>/work/shards/asked/verbalized/{model}/{task}/{shard}.arrow",
    log:
        "<logs>/ask_verbalized/{model}/{task}.{shard}.log",
    benchmark:
        "<benchmarks>/ask_verbalized/{model}/{task}.{shard}.tsv"
    wildcard_constraints:
        model=one_of(SHARDED),
