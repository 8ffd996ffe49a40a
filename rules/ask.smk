# Questions to a model about its own answers. Two rules, so that a change to one question never
# asks the other again.
#
# ask_p_true      models/{model}/, traces/, rows of the task, or a subset -> asked/p_true/{model}/{task}.arrow
# ask_verbalized  the same                                                -> asked/verbalized/{model}/{task}.arrow
#
# Both also read work/revisions/{model}.txt.


rule ask_p_true:
    """Ask a model whether its answers are true."""
    input:
        **MODEL_FILES,
        traces="<results>/traces/{model}/{task}.arrow",
        task=rows_of_subset,
    output:
        "<results>/{shard}asked/p_true/{model}/{task}.arrow",
    log:
        "<logs>/ask_p_true/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/ask_p_true/{model}/{shard}{task}.tsv"
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
            "ask_p_true.py",
            **PROMPTING,
            journal=f"{JOURNALS}/asked/p_true/{{model}}/{{task}}",
            # Functions, as Snakemake would read the fields of a plain text as wildcards.
            prompt=lambda wildcards: CONFIG.self_evaluation.p_true_prompt,
            start=lambda wildcards: CONFIG.self_evaluation.p_true_start,
            stop=lambda wildcards: list(TASKS[wildcards.task].stop),
        ),
    script:
        "../workflow_scripts/ask_p_true.py"


rule ask_verbalized:
    """Ask a model for its confidence in its answers."""
    input:
        **MODEL_FILES,
        traces="<results>/traces/{model}/{task}.arrow",
        task=rows_of_subset,
    output:
        "<results>/{shard}asked/verbalized/{model}/{task}.arrow",
    log:
        "<logs>/ask_verbalized/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/ask_verbalized/{model}/{shard}{task}.tsv"
    wildcard_constraints:
        model=one_of(DECODED_MODELS),
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    threads: model_setting("threads")
    resources:
        **requests(),
    params:
        **settings(
            "ask_verbalized.py",
            **PROMPTING,
            journal=f"{JOURNALS}/asked/verbalized/{{model}}/{{task}}",
            prompt=lambda wildcards: CONFIG.self_evaluation.verbalized_prompt,
            asking=task_settings(PromptSettings),
        ),
    script:
        "../workflow_scripts/ask_verbalized.py"
