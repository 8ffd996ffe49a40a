# What models of meaning say of the answers: weights of tokens and phrases, samples compared.
# reads   the config's `encoders` and `lars`, world/, models/{model}/ (its tokenizer), traces/,
#         samples/, tasks/
# writes  encoders/{encoder}/, weights/{token_sar,mars}/{model}/{task}.arrow,
#         comparisons/{model}/{task}.arrow

# What the world teaches each encoder with
LESSONS = {"similarity": "corpus", "importance": "discussions", "entailment": "discussions"}
TRAINED_ENCODERS = {
    name for name, one in CONFIG.encoders if one and one.source and one.source.train
}


localrules:
    link_encoder,


rule train_encoder:
    input:
        # Replies phrase by phrase; the sentence encoder is trained on questions and answers.
        taught=lambda wildcards: f"<results>/world/{LESSONS[wildcards.encoder]}.parquet",
        tokenizer="<results>/world/tokenizer",
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/train_encoder/{encoder}.log",
    benchmark:
        "<benchmarks>/train_encoder/{encoder}.tsv"
    wildcard_constraints:
        encoder=one_of(TRAINED_ENCODERS),
    priority: 10
    conda:
        "../envs/inference.yaml"
    threads: 1
    params:
        code=code("train_{encoder}.py"),
        training=encoder_training,
    message:
        "Training the encoder of {wildcards.encoder}"
    script:
        "../workflow_scripts/train_{wildcards.encoder}.py"


rule link_encoder:
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/link_encoder/{encoder}.log",
    wildcard_constraints:
        encoder=one_of([name for name, source in ENCODER_SOURCES.items() if source.path]),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("link_model.py"),
        path=lambda wildcards: ENCODER_SOURCES[wildcards.encoder].path,
    message:
        "Linking the encoder of {wildcards.encoder}"
    script:
        "../workflow_scripts/link_model.py"


rule weigh_token_sar:
    input:
        model="<results>/models/{model}",
        encoder="<results>/encoders/similarity",
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/weights/token_sar/{model}/{task}.arrow",
    log:
        "<logs>/weigh_token_sar/{model}/{task}.log",
    benchmark:
        "<benchmarks>/weigh_token_sar/{model}/{task}.tsv"
    conda:
        "../envs/inference.yaml"
    resources:
        **asks(encoder_needs("similarity")),
        batch_size=encoder_batch_size("similarity"),
    params:
        code=code("weigh_token_sar.py"),
        journal=journal("weights/token_sar"),
    message:
        "Weighing tokens of {wildcards.model} on {wildcards.task}: token_sar"
    script:
        "../workflow_scripts/weigh_token_sar.py"


rule weigh_mars:
    input:
        # No file where no model is configured: then every word is a phrase of equal weight.
        encoder="<results>/encoders/importance" if "importance" in ENCODER_SOURCES else [],
        model="<results>/models/{model}",
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/weights/mars/{model}/{task}.arrow",
    log:
        "<logs>/weigh_mars/{model}/{task}.log",
    benchmark:
        "<benchmarks>/weigh_mars/{model}/{task}.tsv"
    conda:
        "../envs/inference.yaml"
    resources:
        **asks(encoder_needs("importance")),
        batch_size=encoder_batch_size("importance"),
    params:
        code=code("weigh_mars.py"),
        journal=journal("weights/mars"),
        phrases=phrase_settings(),
    message:
        "Weighing phrases of {wildcards.model} on {wildcards.task}: mars"
    script:
        "../workflow_scripts/weigh_mars.py"


rule compare_samples:
    input:
        encoder="<results>/encoders/entailment",
        samples="<results>/samples/{model}/{task}.arrow",
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/comparisons/{model}/{task}.arrow",
    log:
        "<logs>/compare_samples/{model}/{task}.log",
    benchmark:
        "<benchmarks>/compare_samples/{model}/{task}.tsv"
    conda:
        "../envs/inference.yaml"
    resources:
        **asks(encoder_needs("entailment")),
        batch_size=encoder_batch_size("entailment"),
    params:
        code=code("compare_samples.py"),
        journal=journal("comparisons"),
    message:
        "Comparing samples of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/compare_samples.py"
