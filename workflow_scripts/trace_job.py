"""The frame of a rule's script, `job`, from the packages that the script belongs to.

Snakemake appends this folder to the search path of a script. The packages come before all else, as
others of another version may be installed. Nothing here changes the environment of the process
that started the job.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
PACKAGES = ("tracecal", "trace_workflow")


def folder_of_packages(scripts: Path) -> Path | None:
    """The folder that holds the packages, and no library; None where Snakemake fetched the scripts.

    In a checkout it is that of the scripts. Where the packages are installed, links to them are
    made in a new folder, which stays until the process ends: the libraries beside them may not suit
    the environment of a job, as with --sdm conda.
    """
    if (scripts / PACKAGES[0]).is_dir():
        return scripts
    installed = scripts.parents[2]  # of site-packages/trace_workflow/checkout/workflow_scripts
    if not (installed / PACKAGES[0]).is_dir():
        return None
    links = Path(tempfile.mkdtemp(prefix="trace_job_"))
    atexit.register(shutil.rmtree, links)
    for name in PACKAGES:
        (links / name).symlink_to(installed / name)
    return links


# Torch's threads wait without computing, as other jobs use the machine too.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if folder := folder_of_packages(SCRIPTS):
    sys.path.insert(0, str(folder))
    # Of the processes that the job starts.
    paths = filter(None, [str(folder), os.getenv("PYTHONPATH")])
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)

from trace_workflow.jobs.job import job as job  # noqa: E402
