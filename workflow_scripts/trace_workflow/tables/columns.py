"""The columns of the tables' CSVs, each with its unit and meaning, as Markdown.

`columns.yaml` beside this module defines them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracecal.estimators.registry import REPRESENTATIVE
from tracecal.io.input_files import read_yaml

COLUMNS = Path(__file__).with_suffix(".yaml")
OPENING = """\
# The tables of this run

Each table is there as `.tex`, `.html` and `.csv`. A CSV holds all its numbers at full precision;
an empty cell is undefined, lists have spaces between their entries. Values that are averages are
means over random splits, then over tasks, then over models.
"""


def describe_column(
    column: str,
    tasks: Mapping[str, str],
    descriptions: Mapping,
    estimators: Sequence[str] = REPRESENTATIVE,
) -> tuple[str, str]:
    """The unit and the meaning of a column by `descriptions`; `tasks` has labels by id.

    `estimators` have a column each. Raises `ValueError` for an unknown column.

    >>> describe_column("risk_at_10", {}, read_yaml(COLUMNS))
    ('share', 'error rate of the 10 % most confident answers')
    """
    metrics = descriptions["metrics"]
    metric = f"(?P<metric>{'|'.join(metrics)})"
    estimator = f"(?P<estimator>{'|'.join(map(re.escape, estimators))})"
    for pattern, unit, words in descriptions["columns"]:
        pattern = pattern.replace("METRIC", metric).replace("ESTIMATOR", estimator)
        if match := re.fullmatch(pattern, column):
            parts = match.groupdict()
            part = parts.get("part", "")
            facts = {"where": descriptions["parts"].get(part, f"on {tasks.get(part, part)}")}
            facts["unit"], facts["words"] = metrics.get(parts.get("metric"), ("", ""))
            return unit.format(**facts, **parts), words.format(**facts, **parts)
    raise ValueError(f"{COLUMNS.name} does not describe the column {column!r}")


def describe_tables(
    tables: Mapping[str, Sequence[str]],
    titles: Mapping[str, str],
    tasks: Mapping[str, str],
    estimators: Sequence[str] = REPRESENTATIVE,
) -> str:
    """The columns of all `tables`, by name, as one Markdown page."""
    descriptions = read_yaml(COLUMNS)
    sections = [OPENING]
    for name, columns in tables.items():
        rows = [
            (column, *describe_column(column, tasks, descriptions, estimators))
            for column in columns
        ]
        sections.append(_section(f"{name}.csv: {titles[name]}", rows))
    sections.append(
        _section("`<table>_vs_paper.csv`: the paper's numbers beside ours", descriptions["beside"])
    )
    return "\n".join(sections)


def _section(title: str, rows: Sequence[Sequence[str]]) -> str:
    lines = [f"## {title}", "", "| column | unit | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {unit} | {words} |" for name, unit, words in rows]
    return "\n".join([*lines, ""])
