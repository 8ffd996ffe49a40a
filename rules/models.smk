# Model folders: trained here, linked, or unpacked; those of the hub are staged (stage.smk).
# reads   the config's `models` and `encoders`, world/corpus.parquet, world/tokenizer/, installed
#         packages
# writes  models/{model}/, work/revisions/{model}.txt, encoders/{encoder}/ (unpacked ones)

from tracecal.config.encoders import users
from tracecal.config.resources import has_gpu
from tracecal.stage.folder import check_model_folder, checked_fingerprint, require_chat_template
from tracecal.stage.package import find_files

# Where encoders come from; `lars` is the one that the LARS scorer starts from.
ENCODER_SOURCES = {
    name: encoder.source for name, encoder in CONFIG.encoders if encoder and encoder.source
}
ENCODER_SOURCES["lars"] = CONFIG.lars.encoder.source

TRAINED = sorted(slug for slug, model in MODELS.items() if model.source.train)
LINKED = sorted(slug for slug, model in MODELS.items() if model.source.path)
PACKED = sorted(slug for slug, model in MODELS.items() if model.source.package)

# What is there when the run starts is looked at then, and by dry runs.
GIVEN_MODELS = {
    f"model {slug!r}": MODELS[slug].source for slug in sorted(STUDIED.intersection(MODELS))
} | {
    f"encoder {name!r}": source
    for name, source in ENCODER_SOURCES.items()
    if {estimator.id for estimator in RUN.chosen}.intersection(users(CONFIG.sampling)[name])
}
# With --sdm, packages are installed where the jobs run.
PACKAGES_HERE = not workflow.deployment_settings.deployment_method
if workflow.is_main_process:
    try:
        for named, source in GIVEN_MODELS.items():
            if source.path:
                check_model_folder(Path(source.path).expanduser())
            if source.package and PACKAGES_HERE:
                find_files(source.package, source.files)
        for slug in sorted(STUDIED.intersection(MODELS)):
            named, made = f"model {slug!r}", Path(f"{FOLDER}/models/{slug}")
            if MODELS[slug].chat and made.is_dir():
                require_chat_template(made)
    except InputError as error:
        raise WorkflowError(f"{named}: {error}") from None
    for slug in STUDIED.intersection(MODELS):
        if MODELS[slug].gpus and workflow.local_exec and not has_gpu():
            logger.warning(f"model {slug!r} asks for a GPU, and here is none: it runs on the CPU")


localrules:
    link_model,


rule train_model:
    input:
        corpus="<results>/world/corpus.parquet",
        tokenizer="<results>/world/tokenizer",
    output:
        model=directory("<results>/models/{model}"),
    log:
        "<logs>/train_model/{model}.log",
    wildcard_constraints:
        model=one_of(TRAINED),
    priority: 10
    conda:
        "../envs/inference.yaml"
    # One thread each: models train side by side, and two threads on one model are slower.
    threads: 1
    params:
        **settings(
            "models/train_model.py",
            training=lambda wildcards: MODELS[wildcards.model].source.train.model_dump()
            | {"seed": CONFIG.seed},
        ),
    message:
        "Training {wildcards.model}"
    script:
        "../workflow_scripts/models/train_model.py"


rule link_model:
    output:
        directory("<results>/models/{model}"),
    log:
        "<logs>/link_model/{model}.log",
    wildcard_constraints:
        model=one_of(LINKED),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "models/link_model.py",
            path=lambda wildcards: MODELS[wildcards.model].source.path,
            content=lambda wildcards: or_stop(
                checked_fingerprint, MODELS[wildcards.model].source.path
            ),
        ),
    message:
        "Linking {wildcards.model}"
    script:
        "../workflow_scripts/models/link_model.py"


rule unpack_model:
    output:
        directory("<results>/models/{model}"),
    log:
        "<logs>/unpack_model/{model}.log",
    wildcard_constraints:
        model=one_of(PACKED),
    priority: 10
    conda:
        "../envs/inference.yaml"
    params:
        **settings(
            "models/unpack_model.py",
            source=lambda wildcards: MODELS[wildcards.model].source.model_dump(
                include={"package", "files"}
            ),
        ),
    message:
        "Unpacking {wildcards.model}"
    script:
        "../workflow_scripts/models/unpack_model.py"


use rule unpack_model as unpack_encoder with:
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/unpack_encoder/{encoder}.log",
    wildcard_constraints:
        encoder=one_of([name for name, source in ENCODER_SOURCES.items() if source.package]),
    params:
        **settings(
            "models/unpack_model.py",
            source=lambda wildcards: ENCODER_SOURCES[wildcards.encoder].model_dump(
                include={"package", "files"}
            ),
        ),
    message:
        "Unpacking the encoder of {wildcards.encoder}"


rule fingerprint_model:
    input:
        model="<results>/models/{model}",
    output:
        "<results>/work/revisions/{model}.txt",
    log:
        "<logs>/fingerprint_model/{model}.log",
    wildcard_constraints:
        model=one_of(TRAINED + LINKED + PACKED),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings("models/fingerprint_model.py"),
    message:
        "Fingerprinting the weights of {wildcards.model}"
    script:
        "../workflow_scripts/models/fingerprint_model.py"
