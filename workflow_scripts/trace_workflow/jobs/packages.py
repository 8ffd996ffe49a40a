"""What to type where a library is missing."""

from trace_workflow.jobs.code_hash import SCRIPTS


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
