# Tasks: a table of examples each, their random splits, and a subset for what costs most.
#
# prepare_task  files_of_rows         -> tasks/{task}.parquet
# draw_splits   tasks/{task}.parquet  -> splits/{task}.parquet
# draw_subset   tasks/{task}.parquet  -> work/subsets/{task}.parquet
#
# files_of_rows: a task's local files, or what stage_rows (models.smk) fetched,
# work/rows/{task}/{rows}.parquet; of a task of parts the other task's table and files.

from trace_workflow.config.task_digests import task_digest
from trace_workflow.config.tasks import Rows
from trace_workflow.config.tasks import local_path

# The files of each task's rows, staged or local; with a storage provider, too, these lie on the disk. Whether
# local ones or the code changed is decided by the table that they make.
FILES_OF_ROWS = {}
for slug, task in TASKS.items():
    if task.source.hub:
        names = [file.name for file in task.row_files()]
        FILES_OF_ROWS[slug] = [f"<results>/work/rows/{slug}/{name}.parquet" for name in names]
    elif task.source.path:
        FILES_OF_ROWS[slug] = ancient(
            local([local_path(file, ROOT) for file in task.local_files()])
        )
for slug, parent in PARENTS.items():
    FILES_OF_ROWS[slug] = [f"<results>/tasks/{parent}.parquet", *FILES_OF_ROWS[parent]]

# The settings of the rows of the task whose answers are cut into parts.
settings_of_parent = lambda wildcards: (
    TASKS[PARENTS[wildcards.task]].part(Rows) if wildcards.task in PARENTS else None
)

# A digest of the table that a task's rows make.
digest_of_table = lambda slug: shared_digest(
    task_digest,
    slug,
    TASKS[slug],
    [file.replace("<results>", FOLDER) for file in FILES_OF_ROWS[slug]],
    CONFIG.seed,
    SCRIPTS / "prepare_task.py",
    TASKS.get(PARENTS.get(slug)),
)

# A user's rows are read at the start, also by dry runs.
for slug in sorted(STUDIED.intersection(TASKS)):
    if TASKS[slug].source.path and not IS_LINTER:
        digest_of_table(slug)

PREPARE_TASK = settings(
    "prepare_task.py",
    spec=task_settings(Rows),
    parent=settings_of_parent,
    table=lambda wildcards: digest_of_table(wildcards.task),
    seed=CONFIG.seed,
)
code_of_prepare_task = PREPARE_TASK.pop("code")


rule prepare_task:
    """Make a task's table of examples from its rows."""
    input:
        files_of_rows,
    output:
        "<results>/tasks/{task}.parquet",
    log:
        "<logs>/prepare_task/{task}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **PREPARE_TASK,
        # Not recorded, as it depends on the threads: code changes that leave the table unchanged trigger no rerun.
        code=lambda wildcards, threads: code_of_prepare_task(wildcards),
    script:
        "../workflow_scripts/prepare_task.py"


rule draw_splits:
    """Draw the random splits of a task into calibration and evaluation examples."""
    input:
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/splits/{task}.parquet",
    log:
        "<logs>/draw_splits/{task}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "draw_splits.py",
            # Parts are split as their answers are.
            task=lambda wildcards: PARENTS.get(wildcards.task, wildcards.task),
            seed=CONFIG.seed,
            splits=CONFIG.splits.count,
            share=CONFIG.splits.calibration_share,
        ),
    script:
        "../workflow_scripts/draw_splits.py"


rule draw_subset:
    """Draw the examples of a task for the steps that cost most."""
    input:
        task="<results>/tasks/{task}.parquet",
    output:
        f"<results>/{SUBSETS}/{{task}}.parquet",
    log:
        "<logs>/draw_subset/{task}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "draw_subset.py",
            seed=CONFIG.seed,
            answers=CONFIG.study.broader.answers,
        ),
    script:
        "../workflow_scripts/draw_subset.py"
