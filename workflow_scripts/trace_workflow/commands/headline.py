"""Print a finished run's findings, and where to look.

python workflow_scripts headline [--configfile config/mine.yaml]
"""

import argparse
import sys
from pathlib import Path

from trace_workflow.config.run import load_config
from tracecal.errors import InputError
from tracecal.io.input_files import read_yaml

LOOK = {
    "every answer": "explorer.html",
    "all estimators": "tables/main_comparison.html",
    "figures": "figures/performance_overview.svg",
}


def outcome(configfile: str) -> str:
    """The findings, and what to open. Raises `InputError`."""
    folder = Path("results") / load_config(read_yaml(configfile), configfile).run
    findings = folder / "findings.txt"
    if not findings.exists():
        raise InputError(
            f"{findings} is not there yet; first run: snakemake --cores all --configfile "
            f"{configfile}"
        )
    look = [f"  {what}: {(folder / path).resolve().as_uri()}" for what, path in LOOK.items()]
    text = findings.read_text(encoding="utf-8")
    return "\n".join([f"Run {folder.name!r}:", text, "Open in a browser:", *look])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configfile", default="config/config.yaml")
    try:
        print(outcome(parser.parse_args().configfile))
    except InputError as error:
        sys.exit(f"error: {error}")
