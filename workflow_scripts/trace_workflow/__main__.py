"""The workflow's commands: python workflow_scripts COMMAND [arguments]

Where the package is installed: python -m trace_workflow COMMAND [arguments]
"""

import runpy
import sys
from pathlib import Path

from trace_workflow.jobs.packages import not_installed
from tracecal.errors import InputError

COMMANDS = sorted(path.stem for path in (Path(__file__).parent / "commands").glob("[!_]*.py"))


def main() -> None:
    """Run the command that the first argument names, with those that follow it."""
    if sys.argv[1:2] == [] or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: python workflow_scripts {{{','.join(COMMANDS)}}} [arguments]")
    command = sys.argv.pop(1)
    try:
        runpy.run_module(f"trace_workflow.commands.{command}", run_name="__main__", alter_sys=True)
    except ModuleNotFoundError as error:
        sys.exit(f"error: {not_installed(error)}")
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
