# What text encoders say of answers: weights of tokens and phrases, comparisons of samples.
#
# weigh_token_sar  encoders/similarity/, models/{model}/ (its tokenizer), traces/, rows or a subset
#                                                        -> weights/token_sar/{model}/{task}.arrow
# weigh_mars       encoders/importance/, models/{model}/ (its tokenizer), traces/, tasks/{task}.parquet
#                                                        -> weights/mars/{model}/{task}.arrow
# compare_samples  encoders/entailment/, samples/, traces/, rows or a subset
#                                                        -> comparisons/{model}/{task}.arrow

# The languages in which a model finds phrases, and how sharply it weighs them.
IMPORTANCE = CONFIG.encoders.importance
PHRASES = {"languages": [], "temperature": 1.0}
if IMPORTANCE and IMPORTANCE.source:
    PHRASES = IMPORTANCE.model_dump(include={"temperature"})
    PHRASES["languages"] = sorted(IMPORTANCE.languages)


rule weigh_token_sar:
    """Weigh the tokens of answers by their relevance, for TokenSAR."""
    input:
        model="<results>/models/{model}",
        encoder="<results>/encoders/similarity",
        traces="<results>/traces/{model}/{task}.arrow",
        task=rows_of_subset,
    output:
        "<results>/{shard}weights/token_sar/{model}/{task}.arrow",
    log:
        "<logs>/weigh_token_sar/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/weigh_token_sar/{model}/{shard}{task}.tsv"
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(encoder="similarity"),
    params:
        **settings(
            "weigh_token_sar.py",
            journal=f"{JOURNALS}/weights/token_sar/{{model}}/{{task}}",
        ),
    script:
        "../workflow_scripts/weigh_token_sar.py"


rule weigh_mars:
    """Weigh the phrases of answers, for MARS."""
    input:
        # No file where no model is configured: then every word is a phrase of equal weight.
        encoder="<results>/encoders/importance" if "importance" in ENCODER_SOURCES else [],
        model="<results>/models/{model}",
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/{shard}weights/mars/{model}/{task}.arrow",
    log:
        "<logs>/weigh_mars/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/weigh_mars/{model}/{shard}{task}.tsv"
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(encoder="importance"),
    params:
        **settings(
            "weigh_mars.py",
            journal=f"{JOURNALS}/weights/mars/{{model}}/{{task}}",
            phrases=PHRASES,
        ),
    script:
        "../workflow_scripts/weigh_mars.py"


rule compare_samples:
    """Compare the sampled answers with each other and with the decoded answer."""
    input:
        encoder="<results>/encoders/entailment",
        samples="<results>/samples/{model}/{task}.arrow",
        traces="<results>/traces/{model}/{task}.arrow",
        task=rows_of_subset,
    output:
        "<results>/{shard}comparisons/{model}/{task}.arrow",
    log:
        "<logs>/compare_samples/{model}/{shard}{task}.log",
    benchmark:
        "<benchmarks>/compare_samples/{model}/{shard}{task}.tsv"
    retries: MEMORY_RETRIES
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(encoder="entailment"),
    params:
        **settings(
            "compare_samples.py",
            journal=f"{JOURNALS}/comparisons/{{model}}/{{task}}",
        ),
    script:
        "../workflow_scripts/compare_samples.py"
