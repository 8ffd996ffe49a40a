# What rules of several files share: the validated configuration and its parts. Helpers give rules
# plain values only, so that a rule's parameters change exactly when what it uses changes.

import os
import re
import shutil
import sys
import tarfile
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

from snakemake.exceptions import WorkflowError
from snakemake.iocontainers import Wildcards
from snakemake.logging import logger


def root(basedir):
    """The workflow's own folder, where `basedir` is that of its rules.

    Of one that Snakemake reads from a git repository, such as `github(...)`, Snakemake fetches rules
    and scripts one by one; the package that they import is unpacked here, at the same commit.
    """
    if not hasattr(basedir, "ref"):
        return Path(str(basedir)).parent
    repository = basedir.hosted_repo.repo
    folder = Path(".snakemake/workflows", repository.commit(basedir.ref).hexsha).resolve()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = tempfile.mkdtemp(dir=folder.parent)
        with tempfile.TemporaryFile() as packed:
            repository.archive(packed, basedir.ref)
            packed.seek(0)
            tarfile.open(fileobj=packed).extractall(made, filter="data")
        try:
            os.rename(made, folder)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return folder


# Of this file, not of the main Snakefile: another workflow may use this one as a module.
ROOT = root(workflow.current_basedir)
if {"{", "}"}.intersection(str(ROOT)):
    raise WorkflowError(f"{ROOT}: Snakemake reads braces as wildcards; rename the folder.")
SCRIPTS = ROOT / "workflow_scripts"
sys.path.insert(0, str(SCRIPTS))
# Scripts run in processes of their own, which find the package by this.
PYTHONPATH = os.pathsep.join(filter(None, [str(SCRIPTS), os.getenv("PYTHONPATH")]))
os.environ.update(PYTHONPATH=PYTHONPATH)
# By default glibc returns every large matrix to the kernel, and a sixth of a forward pass goes into
# page faults.
for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
    os.environ.setdefault(name, str(512 << 20))

from tracecal.config.selection import choose, chosen_for, missing_from_files
from tracecal.config.run import load_config, load_tasks, resolved_yaml
from tracecal.errors import InputError
from tracecal.config.frozen import freeze, frozen_code
from tracecal.config.resources import has_gpu, job_requests
from tracecal.config.sources import Family
from tracecal import registry
from tracecal.registry import entries, protocol_rows
from tracecal.provenance import code_version, hash_of, text_hash
from tracecal.stage.folder import check_model_folder, checked_fingerprint
from tracecal.storage.digest import REMEMBERED
from tracecal.storage.records import unrecorded
from tracecal.given import read_yaml
from tracecal.tasks.asking import Asking
from tracecal.tasks.prepared import digest_given, task_digest
from tracecal.tasks.rows import Rows
from tracecal.writers.pages import Pages

# The files that the configuration comes from; Snakemake itself takes the last of two equal keys.
GIVEN = list(map(os.path.relpath, workflow.configfiles))

try:
    if workflow.is_main_process:
        for file in GIVEN:
            read_yaml(file)
    CONFIG = load_config(config, ", ".join(GIVEN) or "config")
    TASKS = load_tasks(CONFIG, ROOT)
    PAIRS = CONFIG.pairs()
    CHOSEN, LEFT_OUT = choose(CONFIG, TASKS)
except InputError as error:
    raise WorkflowError(str(error)) from None

for estimator, reason in LEFT_OUT.items():
    logger.warning(f"{estimator} is left out: {reason}")

for model, missing in missing_from_files(CONFIG, CHOSEN).items():
    logger.warning(f"{model}'s answers come from files, which do not give {missing}")

MODELS = {model.slug: model for model in CONFIG.models}
# Where encoders come from; `lars` is the one that the LARS scorer starts from.
ENCODER_SOURCES = {
    name: encoder.source for name, encoder in CONFIG.encoders if encoder and encoder.source
}
ENCODER_SOURCES["lars"] = CONFIG.lars.encoder.source

# Models whose answers come from files, whose answers to a task one job makes, and those whose tasks
# are split into shards.
ANSWERED = sorted(slug for slug, model in MODELS.items() if model.source.answers)
WHOLE = sorted(s for s, model in MODELS.items() if model.shards == 1 and s not in ANSWERED)
SHARDED = sorted(s for s, model in MODELS.items() if model.shards > 1 and s not in ANSWERED)
# Models whose answers and samples vLLM decodes.
SERVED = sorted(s for s, model in MODELS.items() if model.engine == "vllm")
# Where steps keep their finished batches, one folder per step and (model, task), for all shards.
JOURNALS = f"results/{CONFIG.run}/work/journals"
# The models and tasks of the studies; others in the configuration are ignored.
NEEDED = {name for pair in PAIRS for name in pair}
STUDY = CONFIG.study.model_dump()
MODEL_LABELS = {slug: model.name for slug, model in MODELS.items()}
TASK_LABELS = {slug: TASKS[slug].label for slug in sorted(TASKS)}


# What the files of models and rows hold is worked out once, by every process of the run.
os.environ[REMEMBERED] = str(Path(f"results/{CONFIG.run}/work/digests").resolve())

# Jobs that start later, each reading all rules again, are of the code and the configuration as
# they were when the run started, even if files change since: a job runs that code or stops.
CODE = {} if workflow.is_main_process else frozen_code(workflow.config_settings.configfiles)


onstart:
    for job in workflow.dag.needrun_jobs():
        job.params  # every job's code is looked at now
    frozen = freeze(config, ROOT, f"results/{CONFIG.run}/work/configs", CODE)
    workflow.config_settings.configfiles = [frozen]


if workflow.is_main_process:
    lost = unrecorded(Path(f"results/{CONFIG.run}"), Path(".snakemake"))
    if lost:
        logger.warning(
            f"warning: of {len(lost)} results, the first {lost[0]}, there is no record in "
            ".snakemake/metadata of what made them, so Snakemake cannot tell whether they are "
            "stale: `make status` does; put the records back, or start with --forceall."
        )


pathvars:
    results=f"results/{CONFIG.run}",
    logs="<results>/logs",


def one_of(names):
    """A wildcard constraint: one of `names`, or nothing that could be a name."""
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


# Jobs of a cluster do not wait for one another: only the machine's own GPUs are shared in turn.
resource_scopes:
    uses_gpus="local",


wildcard_constraints:
    model=one_of(MODELS),
    task=one_of(TASKS),
    shard=r"\d+-of-\d+",


def for_job(given, wildcards):
    """A text with its wildcards filled in, the same of what a function gives, or anything else."""
    if callable(given):
        return for_job(given(wildcards), wildcards)
    return given.format(**dict(wildcards.items())) if isinstance(given, str) else given


def code(script, *modules):
    """A parameter, the code trigger: a hash of a script and all of the package it imports, and
    the versions of the libraries.

    `modules` are those that it loads by name; all may be functions, or hold wildcards.
    """

    def trigger(wildcards):
        path, *loaded = (for_job(text, wildcards) for text in (script, *modules))
        name = " ".join([path, *loaded])
        if name not in CODE:
            CODE[name] = code_version(SCRIPTS / path, *loaded)
        return CODE[name]

    return trigger


def of_job(what):
    """A parameter function: a setting of the job's model, by its name, or the settings of its task
    that `what`, a pydantic model, declares.
    """
    if isinstance(what, str):
        return lambda wildcards: getattr(MODELS[wildcards.model], what)
    return lambda wildcards: TASKS[wildcards.task].part(what)


def or_stop(work, *given):
    """What `work` returns; where its input is unusable, the run stops with that sentence."""
    try:
        return work(*given)
    except (InputError, OSError) as error:
        raise WorkflowError(str(error)) from None


def of_entry(table, wildcard):
    """An input or parameter function: the entry of `table` that a job's `wildcard` names.

    Wildcards in its texts are filled in and its functions called; empty where there is no entry.
    """

    def entry(wildcards):
        return {
            name: for_job(given, wildcards)
            for name, given in table.get(wildcards[wildcard], {}).items()
        }

    return entry


def questions(wildcards):
    """An input function: the rows of a task, those without an answer of the job's model marked.

    Only answers from files may lack some.
    """
    folder = "work/answered/{model}" if wildcards.model in ANSWERED else "tasks"
    return f"<results>/{folder}/{{task}}.parquet"


def own_pairs(wildcards):
    """The wanted (model, task) pairs of the job's model, or all where it has none."""
    return [pair for pair in wanted_pairs() if wildcards.get("model", pair[0]) == pair[0]]


def pairs(pattern, chosen=own_pairs):
    """An input function: the path `pattern` of every (model, task) pair that `chosen` gives.

    Under the target `available` these are the finished pairs; the next full run sees that inputs
    were added and makes the aggregates again.
    """

    def paths(wildcards):
        names = (dict(zip(("model", "task"), pair)) for pair in chosen(wildcards))
        return [for_job(pattern, Wildcards(fromdict=pair)) for pair in names]

    return paths


def main_pairs(wildcards):
    """The main study's (model, task) pairs, in the order of `of_main`'s paths."""
    main = CONFIG.study.main
    return [[m, t] for m, t in wanted_pairs() if m == main.model and t in main.tasks]


# An input function: a path of each of these pairs.
of_main = partial(pairs, chosen=main_pairs)


def wanted_pairs():
    """All (model, task) pairs; under the target `available` those that are finished."""
    # As a module's rule its name may have a prefix.
    if not any(target.endswith("available") for target in workflow.dag_settings.targets):
        return PAIRS
    finished = f"results/{CONFIG.run}/metrics/{{}}/{{}}.parquet"
    chosen = [pair for pair in PAIRS if Path(finished.format(*pair)).exists()]
    if not chosen:
        raise WorkflowError(f"nothing is available yet: {finished.format('*', '*')}")
    return chosen


def chosen(wildcards):
    """The estimators that are computed for a model."""
    return chosen_for(wildcards.model, CHOSEN, CONFIG)


def audit(wildcards):
    """An input function: the audit of the traces, which answers from files have none of."""
    return [] if wildcards.model in ANSWERED else "<results>/audits/{model}/{task}.json"


# What a job that runs a language model reads for it, and how the model is loaded and prompted.
MODEL_FILES = {
    "model": "<results>/models/{model}",
    "revision": "<results>/work/revisions/{model}.txt",
}
# That `chat: true` wants a template changes no result: `generate` looks, by a resource.
PROMPTING = {
    "loading": of_job("loading"),
    "chat": lambda wildcards: False if MODELS[wildcards.model].chat is False else None,
    "seed": CONFIG.seed,
}


# The resources that a job requests which runs its model or an encoder.
requests = partial(job_requests, MODELS, CONFIG.encoders)

# The report's pages, and how a rule's output is shown there.
PAGES = Pages(read_yaml(ROOT / "report/contents.yaml"))
WORDS, shown = PAGES.words, PAGES.shown

# Which estimators comparisons show, which are computed for the main study's model, and those few
# that stand for their kind in its analyses, a user's own among them.
COMPARED = entries(e for e in CHOSEN if e.role in ("baseline", "trace"))
MAIN_CHOSEN = chosen_for(CONFIG.study.main.model, CHOSEN, CONFIG)
MAIN_COMPARED = [e for e in MAIN_CHOSEN if e.role in ("baseline", "trace")]
OWN = [e for e in MAIN_CHOSEN if e.id not in registry.IDS]
FOLLOWED = [e for e in MAIN_CHOSEN if e in OWN or e.id in registry.REPRESENTATIVE]
REPRESENTATIVE = entries(FOLLOWED)
