# What every process of a run does first: find the package, read the configuration and task files.

import importlib.util
import inspect
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from snakemake.logging import logger
from snakemake_interface_common.exceptions import WorkflowError

# The workflow's own folder, by this file's name: another workflow may use this one as a module. Where
# Snakemake fetched this file from a git URL, the package must be installed, with the rest of the workflow.
FILE = inspect.currentframe().f_code.co_filename
ROOT = Path(FILE).resolve().parents[1]
IS_FETCHED = not (ROOT / "workflow_scripts").is_dir()
if IS_FETCHED:
    hosted = re.match(r"https://raw\.githubusercontent\.com/([^/]+/[^/]+)/([^/]+)/rules/", FILE)
    address = "https://github.com/{}@{}".format(*hosted.groups()) if hosted else "ADDRESS@TAG"
    INSTALL = f"pip install --force-reinstall 'tracecal[workflow] @ git+{address}'"
    if importlib.util.find_spec("trace_workflow") is None:
        raise WorkflowError(
            "The rules come from a git URL and need the workflow's package in Snakemake's environment: "
            f"type {INSTALL}, or name the Snakefile of a clone; see docs/reference/installation.md."
        )
    from trace_workflow.jobs.code_hash import SCRIPTS

    ROOT = SCRIPTS.parent
    for path in sorted([*ROOT.glob("rules/*.smk"), *SCRIPTS.glob("[!_]*.py")]):
        fetched = Path(workflow.source_path(f"../{path.relative_to(ROOT)}"))
        # Of a file in git Snakemake loses the end of the last line.
        if fetched.read_text().rstrip() != path.read_text().rstrip():
            raise WorkflowError(
                f"{path.relative_to(ROOT)} of the git URL is not that of the installed package: "
                f"type {INSTALL}"
            )
SCRIPTS = ROOT / "workflow_scripts"
if {"{", "}"}.intersection(str(ROOT)):
    raise WorkflowError(f"{ROOT}: Snakemake reads braces as wildcards; rename the folder.")
if set(sys.executable).intersection(" \t\n'\"`\\$&;|<>()*?#"):
    raise WorkflowError(
        f"{sys.executable}: Snakemake passes the path of Python to a shell without quotes; rename the "
        "folder to a name without spaces, quotes or shell characters."
    )
# First, as a package of another version may be installed beside; and only for these imports, as a workflow
# that uses this one has a path and an environment of its own, which Polars would change.
ENVIRONMENT = dict(os.environ)
sys.path.insert(0, str(SCRIPTS))

with suppress(ModuleNotFoundError):  # what needs it says that it is missing
    import polars

from trace_workflow.config.frozen import config_sources
from tracecal.errors import InputError
from tracecal.io.input_files import read_yaml
from trace_workflow.jobs.packages import not_installed
from trace_workflow.contents.contents import plan
from trace_workflow.config.run import load_run
from tracecal.io.digests import REMEMBERED
from tracecal.io.digests import hash_of
from tracecal.io.files import verify
from trace_workflow.jobs.code_hash import code_version
from trace_workflow.jobs.code_hash import settings_hash
from trace_workflow.contents.report_pages import ReportPages

sys.path.remove(str(SCRIPTS))
os.environ.clear()
os.environ.update(ENVIRONMENT)


def or_stop(function, *arguments):
    """What `function` returns; where its input is unusable, the run stops with its sentence."""
    try:
        return function(*arguments)
    except (InputError, OSError) as error:
        raise WorkflowError(str(error)) from None
    except ModuleNotFoundError as error:
        raise WorkflowError(not_installed(error)) from None


# Snakemake says neither where the configuration comes from nor that a key is given twice in it. A file
# that the Snakefile names is among these, as Snakemake merges it with those of the command line.
CONFIG_FILES = [
    str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)
    for file in map(Path, workflow.configfiles)
]
for file in filter(os.path.isfile, CONFIG_FILES):  # a job of a cluster may lack them
    or_stop(read_yaml, file)
RUN = or_stop(load_run, config, config_sources(CONFIG_FILES, sys.argv[1:]), ROOT)
CONFIG, TASKS, SELECTION = RUN.config, RUN.tasks, RUN.selection
FOLDER = f"results/{CONFIG.run}"


pathvars:
    results=FOLDER,
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


# Jobs of a cluster do not wait for one another: only the machine's own GPUs are shared in turn.
resource_scopes:
    uses_gpus="local",


def settings(script, *, loads=lambda wildcards: [], **params):
    """A rule's parameters: `params`, its code, and what its results say made them.

    `code` is a hash of the script and of everything that it imports from the package, and the
    versions of the libraries; `loads` gives the modules that a job loads by name. `made_with` is a
    hash of all parameters. Snakemake records no parameter that depends on outputs, so it triggers
    nothing itself.
    """
    params["code"] = lambda wildcards: code_version(SCRIPTS / script, *loads(wildcards))

    def made_with(wildcards, output):
        values = {
            name: value(wildcards) if callable(value) else value for name, value in params.items()
        }
        return verify(output, settings_hash(values))

    return {**params, "made_with": made_with}


def shared_digest(function, *arguments):
    """A digest by `function`, which the processes of a run share, so that it is computed once."""
    token = REMEMBERED.set(f"{FOLDER}/work/digests")
    try:
        return or_stop(function, *arguments)
    finally:
        REMEMBERED.reset(token)
