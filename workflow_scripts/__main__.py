"""The commands of the checkout: python workflow_scripts COMMAND [arguments]."""

import runpy
import sys
from pathlib import Path

COMMANDS = sorted(
    path.stem for path in (Path(__file__).parent / "trace_workflow/commands").glob("[!_]*.py")
)

if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: python workflow_scripts {{{','.join(COMMANDS)}}} [arguments]")
    command = sys.argv.pop(1)
    runpy.run_module(f"trace_workflow.commands.{command}", run_name="__main__", alter_sys=True)
