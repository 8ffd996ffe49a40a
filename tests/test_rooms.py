"""The architecture: data flows one way through the rooms, and modules stay small."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "workflow_scripts"
PACKAGE = SCRIPTS / "tracecal"
ROOMS = (
    "inputs jobs storage registry parts tasks logs config world stage decode weigh label features "
    "learn estimate calibrate watch analyse writers tables figures paper plan explore toolkit"
).split()
MODULES = sorted(PACKAGE.rglob("*.py"))
ADAPTERS = sorted({*SCRIPTS.rglob("*.py")} - {*MODULES})


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_folder_is_a_room():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_its_room_and_those_upstream(path):
    room = path.relative_to(PACKAGE).parts[0]
    # What stands outside the rooms is their common ground.
    allowed = ROOMS[: ROOMS.index(room) + 1] if room in ROOMS else []
    for module in imports(path):
        package, _, rest = module.partition(".")
        imported = rest.split(".")[0]
        if package == "tracecal" and imported in ROOMS:
            assert imported in allowed, f"{room} imports from {imported}"


@pytest.mark.parametrize("path", MODULES + ADAPTERS, ids=lambda path: path.name)
def test_modules_stay_small_and_package_files_know_no_snakemake(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    if path in ADAPTERS:
        assert lines <= 50
    else:
        assert lines <= 300
        assert "snakemake" not in {module.split(".")[0] for module in imports(path)}


def test_a_rooms_init_file_holds_one_sentence_that_says_what_the_room_is():
    for room in ROOMS:
        module = ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))
        sentence = ast.get_docstring(module)
        assert sentence and len(module.body) == 1, room
        assert sentence.endswith(".") and ". " not in sentence and "\n" not in sentence, room


def test_no_module_lies_loose_at_the_packages_root():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "errors.py"}
