"""Print what a finished run found, in at most twelve lines, and where to look.

python workflow_scripts headline [--configfile config/mine.yaml]
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from trace_workflow.config.config import load_config
from trace_workflow.tables.csv_file import read_rows
from trace_workflow.tables.finding import OUTCOMES
from trace_workflow.tables.findings import CAVEAT, CUT, GUARANTEE, RUN
from trace_workflow.tables.metric_names import METRIC_NAMES
from tracecal.errors import InputError
from tracecal.io.input_files import read_yaml

WIDTH, LABEL = 100, 11
RIVALS = {"picked": "selected", "named": "prespecified"}
NO_GUARANTEE = "none: `study.headline` of the configuration fixes no task and error rate."
# Of a run with enough labels.
OTHERWISE = "One run on small tasks: the intervals in the findings say how much is chance."

Findings = Sequence[Mapping[str, str]]


def outcome(configfile: str) -> str:
    """A finished run's headline. Raises `InputError`."""
    folder = Path("results") / load_config(read_yaml(configfile), configfile).run
    findings = folder / "findings.csv"
    if not findings.exists():
        raise InputError(
            f"{findings} is not there yet; first run: snakemake --cores all --configfile "
            f"{configfile}"
        )
    return "\n".join(headline(read_rows(findings), folder))


def headline(findings: Findings, folder: Path) -> list[str]:
    """What the run did, the guarantee, what TRACE+ won, tied and lost, a caveat, where to look.

    `findings` are the lines of the findings' table.
    """
    first = {row["topic"]: row["sentence"] for row in reversed(findings)}
    return [
        *_labelled("Run:", first[RUN.id]),
        *_labelled("Guarantee:", first.get(GUARANTEE.id, NO_GUARANTEE)),
        *(compared(findings, name) for name in OUTCOMES),
        *_labelled("Caveat:", first.get(CUT.id, first.get(CAVEAT.id, OTHERWISE))),
        *_labelled("Look at:", f"{folder}/explorer.html, {folder}/tables/main_comparison.html"),
        *_labelled("Findings:", f"{folder}/findings.txt; their numbers: {folder}/findings.csv"),
    ]


def compared(findings: Findings, name: str) -> str:
    """The rivals of TRACE+ and differences with this outcome, as many as fit in a line."""
    rows = sorted(
        (row for row in findings if row["outcome"] == name), key=lambda row: row["against"]
    )
    line = f"{name.capitalize() + ':':{LABEL}}nothing"
    for count in range(len(rows), 0, -1):
        parts = [
            f"{RIVALS[rival]}: {', '.join(map(_short, group))}"
            for rival, group in groupby(rows[:count], lambda row: row["against"])
        ]
        parts += [f"{len(rows) - count} more"] * (count < len(rows))
        line = f"{name.capitalize() + ':':{LABEL}}baseline {'; '.join(parts)}"
        if len(line) <= WIDTH:
            break
    return line


def _short(row: Mapping[str, str]) -> str:
    where = f" on {row['task_label']}" if row["task"] else ""
    return f"{METRIC_NAMES[row['metric']]}{where} {float(row['difference']):+.3f}"


def _labelled(label: str, text: str) -> list[str]:
    return wrap(
        f"{label:{LABEL}}{text}", WIDTH, subsequent_indent=" " * LABEL, break_on_hyphens=False
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configfile", default="config/config.yaml")
    try:
        print(outcome(parser.parse_args().configfile))
    except InputError as error:
        sys.exit(f"error: {error}")
