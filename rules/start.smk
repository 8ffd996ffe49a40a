# What every process of a run does first: find the package, read the configuration and make the plan.

import atexit
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.persistence import PersistenceBase


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
# First, as a package of another version may be installed beside; scripts run in processes of their
# own, which find the package by PYTHONPATH.
sys.path.insert(0, str(SCRIPTS))
PYTHONPATH = os.pathsep.join(filter(None, [str(SCRIPTS), os.getenv("PYTHONPATH")]))
os.environ.update(PYTHONPATH=PYTHONPATH)
# By default glibc returns every large matrix to the kernel, and a sixth of a forward pass goes into
# page faults.
for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
    os.environ.setdefault(name, str(512 << 20))

from tracecal.jobs.sources import load_by_content

load_by_content()

from tracecal.config.frozen import freeze, frozen_code
from tracecal.config.selection import missing_from_files, missing_from_parts
from tracecal.errors import InputError
from tracecal.inputs.files import read_yaml
from tracecal.jobs.syntax import keep
from tracecal.plan.plan import plan
from tracecal.plan.run import load_run
from tracecal.storage.digest import REMEMBERED
from tracecal.storage.records import judge_by_results, remember_killed
from tracecal.writers.pages import Pages

os.environ.update(TRACECAL_JOB="1")  # to scripts, which load the package in their own way


def or_stop(work, *given):
    """What `work` returns; where its input is unusable, the run stops with that sentence."""
    try:
        return work(*given)
    except (InputError, OSError) as error:
        raise WorkflowError(str(error)) from None


# The files that the configuration comes from; Snakemake itself takes the last of two equal keys.
CONFIG_FILES = list(map(os.path.relpath, workflow.configfiles))
if workflow.is_main_process:
    for file in CONFIG_FILES:
        or_stop(read_yaml, file)
RUN = or_stop(load_run, config, ", ".join(CONFIG_FILES) or "config", ROOT)
CONFIG, TASKS = RUN.config, RUN.tasks
PLAN = or_stop(plan, RUN)
FOLDER = f"results/{CONFIG.run}"

for estimator, reason in RUN.left_out.items():
    logger.warning(f"{estimator} is left out: {reason}")

for model, missing in missing_from_files(CONFIG, RUN.chosen).items():
    logger.warning(f"{model}'s answers come from files, which do not give {missing}")

for task, missing in missing_from_parts(CONFIG, RUN.chosen).items():
    logger.warning(f"{task} is made of parts of answers, which do not give {missing}")

# What the files of models and rows hold is worked out once, by every process of the run.
os.environ[REMEMBERED] = str(Path(f"{FOLDER}/work/digests").resolve())

# What counts of the package's sources is kept for the next start.
if workflow.is_main_process:
    atexit.register(keep)

# Jobs that start later, each reading all rules again, are of the code and the configuration as
# they were when the run started, even if files change since: a job runs that code or stops.
CODE = {} if workflow.is_main_process else frozen_code(workflow.config_settings.configfiles)


onstart:
    for job in workflow.dag.needrun_jobs():
        job.params  # every job's code is looked at now
    frozen = freeze(config, ROOT, f"{FOLDER}/work/configs", CODE)
    workflow.config_settings.configfiles = [frozen]


judge_by_results(PersistenceBase)
if workflow.is_main_process:  # a job's own process meets the marks of jobs beside it
    remember_killed(PersistenceBase)


pathvars:
    results=FOLDER,
    logs="<results>/logs",


# Jobs of a cluster do not wait for one another: only the machine's own GPUs are shared in turn.
resource_scopes:
    uses_gpus="local",


# The report's pages, and how a rule's output is shown there.
PAGES = Pages(read_yaml(ROOT / "report/contents.yaml"))
WORDS, shown = PAGES.words, PAGES.shown
