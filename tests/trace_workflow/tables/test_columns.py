"""The dictionary of the CSVs: something of every column of every table, nothing of others."""

import pytest

from tests.trace_workflow.tables import test_languages, test_risk_coverage
from tests.trace_workflow.tables.test_paper_tables import NAMES, TASKS, made
from trace_workflow.tables import columns
from trace_workflow.tables.paper_comparison import COMPARED
from tracecal.io.input_files import read_yaml

TOLD = read_yaml(columns.COLUMNS)


def tables():
    every = {name: made(name) for name in NAMES}
    every["languages"] = test_languages.table("de", "zh")
    every["risk_coverage"] = test_risk_coverage.risk_coverage(
        test_risk_coverage.CONTROLS, test_risk_coverage.MODELS, test_risk_coverage.TASKS
    )
    return every


def test_every_column_of_every_table_has_a_unit_and_a_meaning():
    headers = {name: table.frame.columns for name, table in tables().items()}
    page = columns.describe_tables(headers, {name: name.title() for name in headers}, TASKS)
    for name, header in headers.items():
        section = page.split(f"## {name}.csv: ")[1].split("\n## ")[0]
        rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
        assert [row[0].strip("| `") for row in rows] == header
        assert all(len(row) == 3 and all(cell.strip(" |") for cell in row) for row in rows)
        assert "{" not in section


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("svamp_brier", "on SVAMP"),
        ("short_auroc", "of short answers"),
        ("trace_plus_brier", "`trace_plus`: Brier"),
        ("brier_sd", "s.d. of `brier`"),
        ("auroc_calibrated_picked_improvement_low", "`auroc_calibrated_picked_improvement`"),
        ("enough_0.05", "to guarantee 0.05"),
    ],
)
def test_parts_of_a_name_are_told_apart(column, words):
    assert words in columns.describe_column(column, TASKS, TOLD)[1]


def test_an_unknown_column_is_an_error():
    with pytest.raises(ValueError, match="does not describe the column 'unheard_of'"):
        columns.describe_column("unheard_of", TASKS, TOLD)


def test_the_columns_beside_the_paper_are_those_that_are_told():
    assert [name for name, *_ in TOLD["beside"]] == list(COMPARED)
