# The plan, and what rules of several stages share. Functions give rules plain values only, so that a rule's
# parameters change exactly when what it uses changes.
#
# An input function is named for the files that it gives:
#   rows_of_task               tasks/{task}.parquet; of answers from files, and of parts,
#                              work/answered/{model}/{task}.parquet, which marks missing answers
#   rows_of_subset             work/subsets/{task}.parquet; without `study.broader.answers`
#                              tasks/{task}.parquet
#   audit_of_traces            audits/{model}/{task}.json; of answers from files none
#   answers_file               the user's file with the answers of a model to a task
#   traces_of_whole_answers    traces/{model}/{parent}.arrow, of the task that parts are cut from
#   rows_of_whole_answers      the same task's `rows_of_task`
#   shards_of_file             work/shards/{number}-of-{count}/ and the file
#   estimates_of_task          estimates/{family}/{model}/{task}.parquet, of the families of the run
#   files_of_rows              a task's local files, or work/rows/{task}/{rows}.parquet; of parts the
#                              other task's table and files
#   traces_of_explorer         traces/{model}/{task}.arrow of the whole answers of all pairs
#   files_of_pairs             a path for each (model, task) pair of a study
#   files_of_entry             the files of an entry of the plan, each by its name
#   results_of_finished_pairs  the results of the target `available`

import re
from functools import cache
from functools import partial

from trace_workflow.config.job_resources import job_requests
from tracecal.io.digests import text_hash
from trace_workflow.contents.entries import QUESTIONS
from trace_workflow.contents.entries import SUBSETS
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.config.task_digests import count_questions

# The linter, which may run where only Snakemake is installed, reads rules alone.
IS_LINTER = "--lint" in sys.argv
QUESTIONS_OF_TASKS = [
    shared_digest(count_questions, TASKS[slug], ROOT)
    for slug in CONFIG.study.main.tasks
    if not IS_LINTER
]
is_counted = QUESTIONS_OF_TASKS and None not in QUESTIONS_OF_TASKS
PLAN = or_stop(plan, RUN, max(QUESTIONS_OF_TASKS) if is_counted else None)

for sentence in [*SELECTION.warnings, *filter(None, [RUN.unused, PLAN.left_out])]:
    logger.warning(sentence)

# The report's pages, and how a rule's output is shown there.
PAGES = ReportPages(read_yaml(ROOT / "report/contents.yaml"), PLAN.tables_of_models)
WORDS, shown = PAGES.words, PAGES.report_arguments

PAIRS = CONFIG.study.pairs()
MODELS = {model.slug: model for model in CONFIG.models}

# Models whose answers come from files, and models that decode here.
ANSWERED_MODELS = sorted(slug for slug, model in MODELS.items() if model.source.answers)
DECODED_MODELS = sorted({*MODELS} - {*ANSWERED_MODELS})
# Task of parts of answers -> the task whose answers these are parts of.
PARENTS = RUN.parents
WHOLE_TASKS = sorted({*TASKS} - {*PARENTS})
JOURNALS = f"{FOLDER}/work/journals"  # finished batches, by step, model and task
# The models and tasks of the studies; the configuration may have others, which are ignored.
STUDIED = {name for pair in PAIRS for name in pair}
STUDIED |= {PARENTS[task] for task in STUDIED & {*PARENTS}}


def one_of(names):
    """A wildcard constraint: one of `names`, or nothing that could be a name."""
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


wildcard_constraints:
    model=one_of(MODELS),
    task=one_of(TASKS),
    shard=r"(work/shards/\d+-of-\d+/)?",


# Parameters of a rule.


def model_setting(name):
    """A parameter function: the setting `name` of the job's model."""
    return lambda wildcards: getattr(MODELS[wildcards.model], name)


def task_settings(kind):
    """A parameter function: the settings of the job's task that `kind`, a pydantic model, declares."""
    return lambda wildcards: TASKS[wildcards.task].part(kind)


computed = cache(SELECTION.computed)  # which every parameter of a job asks for


def estimators_of(wildcards):
    """The estimators that are computed for a model on a task."""
    return computed(wildcards.model, wildcards.task)


# Files of a job.


def rows_of_task(wildcards):
    """tasks/{task}.parquet; where the model's answers may lack some rows, these are marked in
    work/answered/{model}/{task}.parquet.
    """
    return PLAN.path(QUESTIONS, model=wildcards.model, task=wildcards.task)


def rows_of_subset(wildcards):
    """The rows for the steps that cost most: work/subsets/{task}.parquet; without
    `study.broader.answers` tasks/{task}.parquet.
    """
    folder = SUBSETS if CONFIG.study.broader.answers else "tasks"
    return f"<results>/{folder}/{wildcards.task}.parquet"


def estimates_of_task(wildcards):
    """estimates/{family}/{model}/{task}.parquet, for each family of the run's estimators."""
    return expand(
        "<results>/estimates/{family}/{{model}}/{{task}}.parquet",
        family=estimators_of(wildcards).families,
    )


def audit_of_traces(wildcards):
    """audits/{model}/{task}.json; of parts of answers, the audit of the traces that they are cut
    from. Answers from files have no audit.
    """
    task = PARENTS.get(wildcards.task, wildcards.task)
    return [] if wildcards.model in ANSWERED_MODELS else f"<results>/audits/{{model}}/{task}.json"


def files_of_pairs(pattern, study="all"):
    """An input function: the path `pattern` of each pair of a study; where the job has a model, of
    this model's pairs.
    """

    def paths(wildcards):
        return [
            PLAN.path(pattern, model=model, task=task)
            for model, task in pairs_of_study(study)
            if wildcards.get("model", model) == model
        ]

    return paths


# The (model, task) pairs of a run. For the target `available` its processes have its folder in:
AVAILABLE = "TRACECAL_AVAILABLE"


def results_of_finished_pairs(results):
    """An input function of a target: `results`, made from the finished pairs alone.

    Snakemake asks what a target needs before it asks what that is made from.
    """

    def targets(wildcards):
        os.environ[AVAILABLE] = FOLDER
        return results

    return targets


def pairs_of_run():
    """The pairs of the run; under the target `available` those that are finished.

    The next full run sees that inputs were added and makes the aggregates again.
    """
    if os.environ.get(AVAILABLE) != FOLDER:
        return PAIRS
    metrics = f"{FOLDER}/metrics/{{}}/{{}}.parquet"
    pairs = [pair for pair in PAIRS if Path(metrics.format(*pair)).exists()]
    if not pairs:
        raise WorkflowError(f"nothing is available yet: {metrics.format('*', '*')}")
    return pairs


def pairs_of_study(study="all"):
    """The pairs of the run that belong to a study, as `Plan.pairs_of_study`."""
    return PLAN.pairs_of_study(study, pairs_of_run())


# Rules with one wildcard for several results. The plan (trace_workflow/contents) has an entry for each,
# which names the files that it is made from.


def files_of_entry(entries, wildcard):
    """An input function: the files of the entry that the job's `wildcard` names."""
    return lambda wildcards: PLAN.inputs(
        entries[wildcards[wildcard]], pairs_of_run(), **dict(wildcards.items())
    )


def settings_of_entry(entries, wildcard):
    """A parameter function: the settings of that entry, with its pairs."""

    def settings(wildcards):
        entry = entries[wildcards[wildcard]]
        pairs = {"pairs": pairs_of_study(entry.pairs)} if entry.pairs else {}
        return {**pairs, **entry.settings}

    return settings


def modules_of_entry(entries, wildcard):
    """The modules that a job for that entry loads by name."""
    return lambda wildcards: [entries[wildcards[wildcard]].module]


# What a job that runs a language model reads for it, and how the model is loaded and prompted.
MODEL_FILES = {
    "model": "<results>/models/{model}",
    "revision": "<results>/work/revisions/{model}.txt",
}
# That `chat: true` wants a template changes no result: `generate` looks, by a resource.
PROMPTING = {
    "loading": model_setting("loading"),
    "chat": lambda wildcards: False if MODELS[wildcards.model].chat is False else None,
    "seed": CONFIG.seed,
}


def folders_of_weights(kind, name):
    """The folders where a model or an encoder (`kind`) may lie: in the run, and the user's."""
    source = MODELS[name].source if kind == "models" else ENCODER_SOURCES.get(name)
    given = [Path(local_path(source.path, ROOT)).expanduser()] if source and source.path else []
    return [Path(f"{FOLDER}/{kind}/{name}"), *given]


# How often a job that was killed starts again; each time it asks for twice the memory. The command line
# decides where it says so, as it does (0) inside a cluster's job, whose memory stays what it is.
MEMORY_RETRIES = None if "--retries" in sys.argv else 2
# The resources that a job requests which runs its model or an encoder.
requests = partial(job_requests, MODELS, CONFIG.encoders, folders_of_weights)


# Functions of single rules, as the linter wants none beside rules.


def model_folder(wildcards):
    """The user's folder of a model."""
    return local_path(MODELS[wildcards.model].source.path, ROOT)


def encoder_folder(wildcards):
    """The user's folder of an encoder."""
    return local_path(ENCODER_SOURCES[wildcards.encoder].path, ROOT)


def environment_of_engine(wildcards):
    """The environment of a rule that vLLM can do."""
    return f"../envs/{'vllm' if wildcards.model in VLLM_MODELS else 'inference'}.yaml"


def engine_modules(wildcards):
    """The modules that a job loads by name: those of the model's engine, where it is vLLM."""
    if wildcards.model not in VLLM_MODELS:
        return []
    return ["trace_workflow.models.vllm_engine", "tracecal.capture.vllm_capture"]


def engine_version(wildcards):
    """The name and version of the model's engine; None for Transformers."""
    return VLLM if wildcards.model in VLLM_MODELS else None


def shards_of_file(file):
    """An input function: work/shards/{number}-of-{count}/`file`, for each of the model's shards."""

    def paths(wildcards):
        count = MODELS[wildcards.model].shards
        return [f"<results>/work/shards/{number + 1}-of-{count}/{file}" for number in range(count)]

    return paths


def answers_file(wildcards):
    """The file of answers made elsewhere of a model to a task."""
    return MODELS[wildcards.model].source.answers.format(task=wildcards.task)


def traces_of_whole_answers(wildcards):
    """traces/{model}/{task}.arrow of the task whose answers a task's are parts of."""
    return f"<results>/traces/{{model}}/{PARENTS[wildcards.task]}.arrow"


def rows_of_whole_answers(wildcards):
    """The rows of the task whose answers a task's are parts of."""
    return PLAN.path(QUESTIONS, model=wildcards.model, task=PARENTS[wildcards.task])


def files_of_rows(wildcards):
    """The files of a task's rows."""
    return FILES_OF_ROWS[wildcards.task]


def traces_of_explorer(wildcards):
    """traces/{model}/{task}.arrow of all pairs; for parts, of the answers that they are cut from."""
    return [
        f"<results>/traces/{model}/{PARENTS.get(task, task)}.arrow"
        for model, task in pairs_of_study()
    ]
