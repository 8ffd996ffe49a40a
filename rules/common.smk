# What rules of several stages share. Helpers give rules plain values only, so that a rule's
# parameters change exactly when what it uses changes.

import re
from functools import partial

from trace_workflow.config.job_resources import job_requests
from trace_workflow.jobs.code_hash import code_version
from trace_workflow.jobs.code_hash import settings_hash
from tracecal.io.digests import text_hash
from trace_workflow.plan.entries import QUESTIONS
from trace_workflow.plan.entries import SUBSETS
from tracecal.io.files import verify
from trace_workflow.config.prompting import PromptSettings

PAIRS = CONFIG.study.pairs()
MODELS = {model.slug: model for model in CONFIG.models}

# Models whose answers come from files, and those that are decoded here.
ANSWERED_MODELS = sorted(slug for slug, model in MODELS.items() if model.source.answers)
DECODED_MODELS = sorted({*MODELS} - {*ANSWERED_MODELS})
# Tasks of parts of answers, each with the task whose answers those are.
PARENTS = RUN.parents
WHOLE_TASKS = sorted({*TASKS} - {*PARENTS})
JOURNALS = f"{FOLDER}/work/journals"  # finished batches, by step, model and task
# The models and tasks of the studies; others in the configuration are ignored.
STUDIED = {name for pair in PAIRS for name in pair}
STUDIED |= {PARENTS[task] for task in STUDIED & {*PARENTS}}


def one_of(names):
    """A wildcard constraint: one of `names`, or nothing that could be a name."""
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


wildcard_constraints:
    model=one_of(MODELS),
    task=one_of(TASKS),
    shard=r"(work/shards/\d+-of-\d+/)?",


def settings(script, *, loads=lambda wildcards: [], **own):
    """A rule's parameters: its `own`, its code, and what its results say made them.

    `code` is a hash of the script and of all of the package it imports, and the versions of the
    libraries; `loads` gives the modules that a job loads by name. `made_with` is a hash of all of
    these. Snakemake records no parameter that depends on outputs, so it triggers nothing itself.
    """
    given = {**own, "code": lambda wildcards: code_version(SCRIPTS / script, *loads(wildcards))}

    def made_with(wildcards, output):
        now = {name: of(wildcards) if callable(of) else of for name, of in given.items()}
        return verify(output, settings_hash(now))

    return {**given, "made_with": made_with}


def of_job(what):
    """A parameter function: a setting of the job's model, by its name, or the settings of its task
    that `what`, a pydantic model, declares.
    """
    if isinstance(what, str):
        return lambda wildcards: getattr(MODELS[wildcards.model], what)
    return lambda wildcards: TASKS[wildcards.task].part(what)


def questions(wildcards):
    """An input function: the rows of a task, those without an answer of the job's model marked."""
    return PLAN.path(QUESTIONS, model=wildcards.model, task=wildcards.task)


def subset(wildcards):
    """An input function: the rows of a task for the steps that cost most."""
    folder = SUBSETS if CONFIG.study.broader else "tasks"
    return f"<results>/{folder}/{wildcards.task}.parquet"


def pairs(pattern, study="all"):
    """An input function: the path `pattern` of a study's pairs, or of those of the job's model."""

    def paths(wildcards):
        own = [pair for pair in wanted_pairs(study) if wildcards.get("model", pair[0]) == pair[0]]
        return [PLAN.path(pattern, model=model, task=task) for model, task in own]

    return paths


# Set for the processes of a run for the target `available`.
AVAILABLE = "TRACECAL_AVAILABLE"


def finished(results):
    """An input function of a target: `results` of the finished (model, task) pairs alone.

    Snakemake asks what a target needs before it asks what that is made from.
    """

    def targets(wildcards):
        os.environ[AVAILABLE] = "1"
        return results

    return targets


def run_pairs():
    """The (model, task) pairs of the run; under the target `available` those that are finished.

    The next full run sees that inputs were added and makes the aggregates again.
    """
    if AVAILABLE not in os.environ:
        return PAIRS
    finished = f"{FOLDER}/metrics/{{}}/{{}}.parquet"
    pairs = [pair for pair in PAIRS if Path(finished.format(*pair)).exists()]
    if not pairs:
        raise WorkflowError(f"nothing is available yet: {finished.format('*', '*')}")
    return pairs


def wanted_pairs(study="all", sharing=()):
    """Those of a study, as `PLAN.pairs_of_study`."""
    return PLAN.pairs_of_study(study, run_pairs(), sharing)


def inputs_of(results, wildcard):
    """An input function: the files of the entry of `results` that a job's `wildcard` names."""
    return lambda wildcards: PLAN.inputs(
        results[wildcards[wildcard]], run_pairs(), **dict(wildcards.items())
    )


def settings_of(results, wildcard):
    """A parameter function: the settings of that entry, with the names of its pairs."""

    def settings(wildcards):
        result = results[wildcards[wildcard]]
        pairs = {"pairs": wanted_pairs(result.pairs, result.sharing)} if result.pairs else {}
        return {**pairs, **result.settings}

    return settings


def modules_of(results, wildcard):
    """The modules that a job for that entry loads by name."""
    return lambda wildcards: [results[wildcards[wildcard]].module]


def chosen(wildcards):
    """The estimators that are computed for a model on a task."""
    return SELECTION.computed(wildcards.model, wildcards.task)


def audit(wildcards):
    """An input function: the audit of the traces, which answers from files have none of; of parts
    of answers, that of the traces that they are cut from.
    """
    task = PARENTS.get(wildcards.task, wildcards.task)
    return [] if wildcards.model in ANSWERED_MODELS else f"<results>/audits/{{model}}/{task}.json"


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
