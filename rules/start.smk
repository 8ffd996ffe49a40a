# What every process of a run does first: find the package, read the configuration, make the plan.
# reads   the configuration files, task files, report/contents.yaml

import inspect
import os
import sys
from pathlib import Path

from snakemake.logging import logger
from snakemake_interface_common.exceptions import WorkflowError

# The workflow's own folder, by this file's name: another workflow may use this one as a module.
ROOT = Path(inspect.currentframe().f_code.co_filename).resolve().parents[1]
SCRIPTS = ROOT / "workflow_scripts"
if not SCRIPTS.is_dir():
    raise WorkflowError(
        "Of a git URL Snakemake fetches rules and scripts, but not the package that they import: "
        "clone the repository, or add it as a submodule, and name its Snakefile: docs/guides/module.md."
    )
if {"{", "}"}.intersection(str(ROOT)):
    raise WorkflowError(f"{ROOT}: Snakemake reads braces as wildcards; rename the folder.")
if set(sys.executable).intersection(" \t\n'\"`$&;|<>()*?#"):
    raise WorkflowError(
        f"{sys.executable}: Snakemake passes the path of Python to a shell without quotes; rename the "
        "folder to a name without spaces and quotes."
    )
# First, as a package of another version may be installed beside; scripts run in processes of their
# own, which find the package by PYTHONPATH.
sys.path.insert(0, str(SCRIPTS))
PYTHONPATH = os.pathsep.join(filter(None, [str(SCRIPTS), os.getenv("PYTHONPATH")]))
os.environ.update(PYTHONPATH=PYTHONPATH)
# By default glibc returns every large matrix to the kernel, and a sixth of a forward pass goes into
# page faults.
for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
    os.environ.setdefault(name, str(512 << 20))

from trace_workflow.config.frozen import config_files
from trace_workflow.config.frozen import config_sources
from tracecal.errors import InputError
from tracecal.io.input_files import read_yaml
from trace_workflow.plan.plan import plan
from trace_workflow.config.run import load_run
from tracecal.io.digests import REMEMBERED
from trace_workflow.plan.report_pages import ReportPages


def or_stop(function, *arguments):
    """What `function` returns; where its input is unusable, the run stops with its sentence."""
    try:
        return function(*arguments)
    except (InputError, OSError) as error:
        raise WorkflowError(str(error)) from None
    except ModuleNotFoundError as error:
        raise WorkflowError(
            f"{error.name} is not installed: type `make .venv/installed` in {ROOT} and use its "
            ".venv/bin/snakemake, or `pip install -r envs/requirements.txt`."
        ) from None


# Snakemake says neither where the configuration comes from nor that a key is given twice in it.
CONFIG_FILES = config_files(sys.argv[1:])
for file in filter(os.path.isfile, CONFIG_FILES):  # with --directory they lie elsewhere
    or_stop(read_yaml, file)
RUN = or_stop(load_run, config, config_sources(sys.argv[1:]), ROOT)
CONFIG, TASKS, SELECTION = RUN.config, RUN.tasks, RUN.selection
PLAN = or_stop(plan, RUN)
FOLDER = f"results/{CONFIG.run}"

for warning in SELECTION.warnings:
    logger.warning(warning)

# The processes of a run share the digests of models' and rows' files, which are computed once.
os.environ[REMEMBERED] = str(Path(f"{FOLDER}/work/digests").resolve())


pathvars:
    results=FOLDER,
    logs="<results>/logs",


# Jobs of a cluster do not wait for one another: only the machine's own GPUs are shared in turn.
resource_scopes:
    uses_gpus="local",


# The report's pages, and how a rule's output is shown there.
PAGES = ReportPages(read_yaml(ROOT / "report/contents.yaml"))
WORDS, shown = PAGES.words, PAGES.report_arguments
