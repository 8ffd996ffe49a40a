# What all rules share: the validated config and its slices. Helpers give rules plain values
# only, so that a rule's parameters change exactly when what it uses changes.

import math
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

ROOT = Path(workflow.basedir)
SCRIPTS = ROOT / "workflow_scripts"
sys.path.insert(0, str(SCRIPTS))

from tracecal.choosing import choose, chosen_for
from tracecal.config import load_config, load_tasks, resolved_yaml
from tracecal.errors import InputError
from tracecal.frozen import freeze
from tracecal.machine import Machine
from tracecal import registry
from tracecal.registry import protocol_rows
from tracecal.provenance import code_hash, hash_of, text_hash
from tracecal.schema import read_yaml
from tracecal.tasks.asking import Asking
from tracecal.tasks.judging import Judging
from tracecal.tasks.rows import Rows

try:
    CONFIG = load_config(config, "config")
    TASKS = load_tasks(CONFIG, ROOT)
    PAIRS = CONFIG.pairs()
    CHOSEN, LEFT_OUT = choose(CONFIG, TASKS)
except InputError as error:
    raise WorkflowError(str(error)) from None

for estimator, reason in LEFT_OUT.items():
    logger.warning(f"{estimator} is left out: {reason}")

MODELS = {model.slug: model for model in CONFIG.models}
# Where encoders come from; of `lars` that which it starts from.
ENCODER_SOURCES = {name: one.source for name, one in CONFIG.encoders if one and one.source}
ENCODER_SOURCES["lars"] = CONFIG.lars.encoder.source

# Models whose answers to a task one job makes, and those that share them out over several.
WHOLE = sorted(slug for slug, model in MODELS.items() if model.shards == 1)
SHARDED = sorted(slug for slug, model in MODELS.items() if model.shards > 1)
STUDY = CONFIG.study.model_dump()
MODEL_LABELS = {slug: MODELS[slug].name for slug in sorted(MODELS)}
TASK_LABELS = {slug: TASKS[slug].label for slug in sorted(TASKS)}


# Jobs that start later read the configuration as it is now, whatever becomes of its files.
onstart:
    frozen = freeze(config, ROOT, f"results/{CONFIG.run}/work/configs")
    workflow.config_settings.configfiles = [frozen]


pathvars:
    results=f"results/{CONFIG.run}",
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


def one_of(names):
    """A wildcard constraint: one of `names`, or nothing that could be a name."""
    return "|".join(map(re.escape, names)) or "(?!)"


# Jobs of a cluster do not wait for one another: only the machine's own GPUs are lent in turn.
resource_scopes:
    uses_gpus="local",


wildcard_constraints:
    model=one_of(MODELS),
    task=one_of(TASKS),
    shard=r"\d+-of-\d+",


def code(script):
    """A parameter, the code trigger: a hash of a script and all of the package it imports.

    `script` may hold wildcards. A function, so that a job on a cluster, which reads all rules anew,
    computes its own hash alone.
    """

    def trigger(wildcards):
        return code_hash(SCRIPTS / script.format(**dict(wildcards.items())))

    return trigger


def pairs(pattern):
    """An input function: the path `pattern` of every (model, task) pair.

    Under the target `available` only of the pairs that are finished. The next full run sees
    that inputs were added and makes the aggregates anew.
    """

    def paths(wildcards):
        return [pattern.format(model=model, task=task) for model, task in wanted_pairs()]

    return paths


def of_model(pattern):
    """An input function: the path `pattern` of every task of the wildcard's model, as `pairs`."""

    def paths(wildcards):
        tasks = [task for model, task in wanted_pairs() if model == wildcards.model]
        return [pattern.format(model=wildcards.model, task=task) for task in tasks]

    return paths


def of_main(pattern):
    """An input function: the path `pattern` of every task of the main study, as `pairs`."""

    def paths(wildcards):
        return [pattern.format(model=model, task=task) for model, task in main_pairs(wildcards)]

    return paths


def main_pairs(wildcards):
    """The main study's (model, task) pairs, in the order of `of_main`'s paths."""
    main = CONFIG.study.main
    return [[m, t] for m, t in wanted_pairs() if m == main.model and t in main.tasks]


def wanted_pairs():
    """All (model, task) pairs; under the target `available` those that are finished."""
    if "available" not in workflow.dag_settings.targets:
        return PAIRS
    finished = f"results/{CONFIG.run}/metrics/{{}}/{{}}.parquet"
    chosen = [pair for pair in PAIRS if Path(finished.format(*pair)).exists()]
    if not chosen:
        raise WorkflowError(f"nothing is available yet: {finished.format('*', '*')}")
    return chosen


def chosen(wildcards):
    """The estimators that are computed for a model."""
    return chosen_for(wildcards.model, CHOSEN, CONFIG)


def scored_families(wildcards):
    """The files of scores that a model's are put together from."""
    families = {one.family for one in chosen(wildcards) if not one.features}
    folder, pair = "<results>/estimates", f"{wildcards.model}/{wildcards.task}"
    return [f"{folder}/{family}/{pair}.parquet" for family in sorted(families)]


def world_settings(wildcards):
    """What the embedded world is made from."""
    if CONFIG.world is None:
        return {}
    world = CONFIG.world
    return {
        "seed": CONFIG.seed,
        "size": world.corpus_examples,
        "evaluation": world.evaluation_rows,
        "training": world.training_rows,
        "self_evaluation": CONFIG.self_evaluation.model_dump(),
    }


def training_settings(wildcards):
    """How a model of the embedded world is trained."""
    return MODELS[wildcards.model].source.train.model_dump() | {"seed": CONFIG.seed}


def task_rows(wildcards):
    """The files a task's rows come from: one of the world's, staged ones, or the user's own."""
    rows = TASKS[wildcards.task]
    if rows.source.world is not None:
        return {"world": f"<results>/world/{rows.source.world}.parquet"}
    if rows.source.hub is not None:
        staged = f"<results>/work/rows/{wildcards.task}"
        return {"rows": [f"{staged}/{part.name}.parquet" for part in rows.parts()]}
    return {"rows": rows.local_files()}


def hub_model(wildcards):
    """Where a staged model comes from."""
    source = MODELS[wildcards.model].source
    return {"hub": source.hub, "revision": source.revision}


def weighed_models():
    """The studies' models that come with weights, and what decides how much they need."""
    return [
        MODELS[slug].model_dump(include={"slug", "dtype", "batch_size"})
        | MODELS[slug].source.model_dump(include={"hub", "revision", "path"})
        | {"tasks": [task for model, task in PAIRS if model == slug]}
        for slug in sorted({model for model, _ in PAIRS})
        if not MODELS[slug].source.train
    ]


def hub_encoder(wildcards):
    """Where a staged encoder comes from."""
    source = ENCODER_SOURCES[wildcards.encoder]
    return {"hub": source.hub, "revision": source.revision}


def hub_rows(wildcards):
    """Where one staged part of a task's rows comes from."""
    spec = TASKS[wildcards.task]
    part = next(part for part in spec.parts() if part.name == wildcards.rows)
    return {
        "hub": spec.source.hub,
        "config": spec.source.config and part.fill(spec.source.config),
        "revision": spec.source.revision,
        "split": part.split,
    }


def journal(kind):
    """A parameter: the folder in which a step keeps its finished batches, shared by shards."""

    def folder(wildcards):
        return f"results/{CONFIG.run}/work/journals/{kind}/{wildcards.model}/{wildcards.task}"

    return folder


def shards_of(wildcards):
    """The shards that a (model, task) of a kind is put together from."""
    count = MODELS[wildcards.model].shards
    names = [f"{number}-of-{count}" for number in range(1, count + 1)]
    folder = f"<results>/work/shards/{wildcards.kind}/{wildcards.model}/{wildcards.task}"
    return [f"{folder}/{name}.arrow" for name in names]


def device_map(wildcards):
    """How a model is spread over GPUs; empty for one device, as a resource cannot be null."""
    return MODELS[wildcards.model].device_map or ""


def asks(needs, share=1.0):
    """What a job asks of a machine: twice as much memory and time at each retry.

    `needs` gives, for a job's wildcards, a `Machine`; `share` is the job's part of its hours.
    One machine lends its GPUs to one job at a time (profiles/default); SLURM counts them.
    """

    def doubled(amount, attempt):
        return math.ceil(amount * 2 ** (attempt - 1))

    return {
        "gpu": lambda wildcards: needs(wildcards).gpus,
        "uses_gpus": lambda wildcards: min(1, needs(wildcards).gpus),
        "mem_mb": lambda wildcards, attempt: doubled(1000 * needs(wildcards).memory_gb, attempt),
        "runtime": lambda wildcards, attempt: doubled(60 * share * needs(wildcards).hours, attempt),
    }


def model_needs(wildcards):
    """What a job needs that runs the language model."""
    model = MODELS[wildcards.model]
    return model.needs(model.source)


def learning_needs(wildcards):
    """The same for small models over its answers: one GPU where it has any."""
    needs = model_needs(wildcards)
    return needs.model_copy(update={"gpus": min(1, needs.gpus)})


def encoder_needs(name):
    """What a job needs that runs an encoder."""
    encoder = getattr(CONFIG.encoders, name) or Machine()
    return lambda wildcards: encoder.needs(getattr(encoder, "source", None))


def entries(chosen):
    """Estimators as tables and figures are handed them."""
    return [[one.id, one.label, one.group, one.role, one.citation] for one in chosen]


def encoder_training(wildcards):
    """How an encoder of the embedded world is trained."""
    return ENCODER_SOURCES[wildcards.encoder].train.model_dump() | {"seed": CONFIG.seed}


def encoder_batch_size(name):
    """How many texts an encoder reads together; 1 where none is configured."""
    encoder = getattr(CONFIG.encoders, name)
    return encoder.batch_size if encoder else 1


def phrase_settings():
    """The languages in which a model finds phrases, and how sharply it weighs them."""
    importance = CONFIG.encoders.importance
    if importance is None or importance.source is None:
        return {"languages": [], "temperature": 1.0}
    return {"languages": sorted(importance.languages), "temperature": importance.temperature}


# The report's pages, numbered as Snakemake sorts them by name, and what each of them shows.
CONTENTS = read_yaml(ROOT / "report/contents.yaml")
PAGES = {question: f"{place} {question}" for place, question in enumerate(CONTENTS, 1)}
LISTED = {
    name: (question, label)
    for question, listed in CONTENTS.items()
    for name, label in listed.items()
}


def shown(name, question=None):
    """On which page the report shows a result, and as what. `name` may hold wildcards.

    The page is that of `question` where it is given, else the one that lists the name.
    """

    def listed(wildcards):
        return LISTED[name.format(**dict(wildcards.items()))]

    return {
        "category": lambda wildcards: PAGES[question or listed(wildcards)[0]],
        "labels": lambda wildcards: {"result": listed(wildcards)[1]},
    }


# Which estimators comparisons show, and those few that stand for their kind in the analyses.
COMPARED = entries(one for one in CHOSEN if one.role in ("baseline", "trace"))
FOLLOWED = [one for one in CHOSEN if one.id in registry.REPRESENTATIVE]
REPRESENTATIVE = entries(FOLLOWED)
