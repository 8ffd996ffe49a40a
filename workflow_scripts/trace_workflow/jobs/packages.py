"""Where a job's process finds the packages, and what to type where a library is missing."""

import os
from pathlib import Path

from trace_workflow.jobs.code_hash import FOLDER, PACKAGES, SCRIPTS


def folder_of_packages(links: Path) -> Path:
    """A folder for PYTHONPATH that holds `PACKAGES`, and no library.

    In a checkout it is theirs. Where they are installed it is `links`, in which links to them are
    made: the libraries beside them may not suit the environment of a job, as with --sdm conda.
    """
    if SCRIPTS == FOLDER:
        return FOLDER
    links.mkdir(parents=True, exist_ok=True)
    for name in PACKAGES:
        link = links / name
        if link.resolve() != FOLDER / name:
            made = links / f"{name}.{os.getpid()}"
            made.symlink_to(FOLDER / name)
            made.replace(link)  # in one step, as other processes of the run read it
    return links.resolve()


def not_installed(error: ModuleNotFoundError) -> str:
    """A sentence that names the missing module and what to type."""
    root = SCRIPTS.parent
    install = "pip install 'tracecal[workflow]'"
    if (root / "Makefile").exists():
        install = (
            f"`make .venv/installed` in {root} and use the programs in its .venv/bin, or `pip "
            "install -r envs/requirements.txt`."
        )
    return f"{error.name} is not installed: type {install}"
