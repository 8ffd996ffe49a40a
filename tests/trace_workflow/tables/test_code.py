"""The code trigger of a table: its own module and what that imports, no other table's."""

from pathlib import Path

import pytest
import yaml

from trace_workflow.jobs.code_hash import code_hash, import_closure

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "workflow_scripts/write_table.py"
MODULES = ROOT / "workflow_scripts/tracecal/tables"
CONTENTS = yaml.safe_load((ROOT / "report/contents.yaml").read_text(encoding="utf-8"))
NAMES = [
    name
    for shown in CONTENTS.values()
    for name in shown
    if (MODULES / f"{name}.py").exists() and name != "costs"
]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_hangs_on_its_own_module_and_on_no_other_tables(name):
    read = {
        path.stem
        for path in import_closure(SCRIPT, f"trace_workflow.tables.{name}")
        if path.parent == MODULES
    }
    assert read & set(NAMES) == {name}


def test_each_table_has_a_hash_of_its_own():
    assert len({code_hash(SCRIPT, f"trace_workflow.tables.{name}") for name in NAMES}) == len(NAMES)
