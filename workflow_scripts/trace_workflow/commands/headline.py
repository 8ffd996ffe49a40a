"""Print what a finished run found, in a few lines, and where to look.

python workflow_scripts headline [--configfile config/mine.yaml]
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap

from trace_workflow.config.config import load_config
from trace_workflow.tables.csv_file import read_rows
from trace_workflow.tables.finding import OUTCOMES
from trace_workflow.tables.metric_names import METRIC_NAMES
from tracecal.errors import InputError
from tracecal.estimators.estimator import TRACE_PLUS
from tracecal.io.input_files import read_yaml

WIDTH, LABEL, MAIN = 100, 11, "main_comparison"
RIVALS = {"named": "prespecified", "picked": "selected", TRACE_PLUS: "TRACE+"}
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
    """What the run did, its own scores, the guarantee, what TRACE+ won, tied and lost, a caveat.

    `findings` are the lines of the findings' table.
    """
    first = {row["topic"]: row["sentence"] for row in reversed(findings)}
    rows = [row for row in findings if row["outcome"] and row["table"] == MAIN]
    labels = {row["estimator_label"] for row in rows if row["estimator"] != TRACE_PLUS}
    return [
        *_labelled("Run:", first["run"]),
        *(line for label in sorted(labels) for line in _labelled("My score:", _score(rows, label))),
        *_labelled("Guarantee:", first.get("guarantee", NO_GUARANTEE)),
        *(compared(rows, name) for name in OUTCOMES),
        *_labelled("Caveat:", first.get("problem", first.get("caveat", OTHERWISE))),
        *_labelled("Look at:", f"{folder}/explorer.html, {folder}/tables/main_comparison.html"),
        *_labelled("Findings:", f"{folder}/findings.txt; their numbers: {folder}/findings.csv"),
    ]


def _score(rows: Findings, label: str) -> str:
    """An own score's outcomes over all tasks."""
    overall = [row for row in rows if row["estimator_label"] == label and not row["task"]]
    by_outcome = {name: [row for row in overall if row["outcome"] == name] for name in OUTCOMES}
    parts = [f"{name} {_by_rival(members)}" for name, members in by_outcome.items() if members]
    return f"{label} {', '.join(parts)}."


def _by_rival(rows: Findings) -> str:
    members: dict[str, list[str]] = {name: [] for name in RIVALS.values()}
    for row in rows:
        if row["against"] in RIVALS:
            where = f" on {row['task_label']}" if row["task"] else ""
            text = f"{METRIC_NAMES[row['metric']]}{where} {float(row['difference']):+.3f}"
            members[RIVALS[row["against"]]].append(text)
    return "; ".join(f"{name}: {', '.join(texts)}" for name, texts in members.items() if texts)


def compared(rows: Findings, name: str) -> str:
    """The rivals of TRACE+ and differences with this outcome, as many as fit in a line."""
    rows = [row for row in rows if (row["outcome"], row["estimator"]) == (name, TRACE_PLUS)]
    line = f"{name.capitalize() + ':':{LABEL}}nothing"
    for count in range(len(rows), 0, -1):
        more = f"; {len(rows) - count} more" * (count < len(rows))
        line = f"{name.capitalize() + ':':{LABEL}}baseline {_by_rival(rows[:count])}{more}"
        if len(line) <= WIDTH:
            break
    return line


def _labelled(label: str, text: str) -> list[str]:
    return wrap(
        f"{label:{LABEL}}{text}", WIDTH, subsequent_indent=" " * LABEL, break_on_hyphens=False
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configfile", default="config/config.yaml")
    print(outcome(parser.parse_args().configfile))
