# Semantic encoders: weights of tokens and phrases, and comparisons of samples.
# reads   the config's `encoders` and `lars`, world/, models/{model}/ (its tokenizer), traces/,
#         samples/, tasks/
# writes  encoders/{encoder}/, weights/{token_sar,mars}/{model}/{task}.arrow,
#         comparisons/{model}/{task}.arrow

# The part of the world that each encoder is trained on
LESSONS = {"similarity": "corpus", "importance": "discussions", "entailment": "discussions"}
TRAINED_ENCODERS = {
    name for name, encoder in CONFIG.encoders if encoder and encoder.source and encoder.source.train
}
# The languages in which a model finds phrases, and how sharply it weighs them.
IMPORTANCE = CONFIG.encoders.importance
PHRASES = {"languages": [], "temperature": 1.0}
if IMPORTANCE and IMPORTANCE.source:
    PHRASES = IMPORTANCE.model_dump(include={"temperature"})
    PHRASES["languages"] = sorted(IMPORTANCE.languages)


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
    wildcard_constraints:
        encoder=one_of(TRAINED_ENCODERS),
    priority: 10
    conda:
        "../envs/inference.yaml"
    threads: 1
    params:
        **settings(
            "weigh/train_encoder.py",
            loads=lambda wildcards: [f"tracecal.world.{wildcards.encoder}"],
            training=lambda wildcards: ENCODER_SOURCES[wildcards.encoder].train.model_dump()
            | {"seed": CONFIG.seed},
        ),
    message:
        "Training the encoder of {wildcards.encoder}"
    script:
        "../workflow_scripts/weigh/train_encoder.py"


use rule link_model as link_encoder with:
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/link_encoder/{encoder}.log",
    wildcard_constraints:
        encoder=one_of([name for name, source in ENCODER_SOURCES.items() if source.path]),
    params:
        **settings(
            "models/link_model.py",
            path=lambda wildcards: ENCODER_SOURCES[wildcards.encoder].path,
            content=lambda wildcards: or_stop(
                checked_fingerprint, ENCODER_SOURCES[wildcards.encoder].path
            ),
        ),
    message:
        "Linking the encoder of {wildcards.encoder}"


rule weigh_token_sar:
    input:
        model="<results>/models/{model}",
        encoder="<results>/encoders/similarity",
        traces="<results>/traces/{model}/{task}.arrow",
        task=subset,
    output:
        "<results>/weights/token_sar/{model}/{task}.arrow",
    log:
        "<logs>/weigh_token_sar/{model}/{task}.log",
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(encoder="similarity"),
    params:
        **settings(
            "weigh/weigh_token_sar.py",
            journal=f"{JOURNALS}/weights/token_sar/{{model}}/{{task}}",
        ),
    message:
        "Weighing tokens of {wildcards.model} on {wildcards.task}: token_sar"
    script:
        "../workflow_scripts/weigh/weigh_token_sar.py"


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
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(encoder="importance"),
    params:
        **settings(
            "weigh/weigh_mars.py",
            journal=f"{JOURNALS}/weights/mars/{{model}}/{{task}}",
            phrases=PHRASES,
        ),
    message:
        "Weighing phrases of {wildcards.model} on {wildcards.task}: mars"
    script:
        "../workflow_scripts/weigh/weigh_mars.py"


rule compare_samples:
    input:
        encoder="<results>/encoders/entailment",
        samples="<results>/samples/{model}/{task}.arrow",
        traces="<results>/traces/{model}/{task}.arrow",
        task=subset,
    output:
        "<results>/comparisons/{model}/{task}.arrow",
    log:
        "<logs>/compare_samples/{model}/{task}.log",
    conda:
        "../envs/inference.yaml"
    resources:
        **requests(encoder="entailment"),
    params:
        **settings(
            "weigh/compare_samples.py",
            journal=f"{JOURNALS}/comparisons/{{model}}/{{task}}",
        ),
    message:
        "Comparing samples of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/weigh/compare_samples.py"
