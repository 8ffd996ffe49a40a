"""The architecture: data flows one way through the rooms."""

import ast
from pathlib import Path

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


def test_modules_import_only_from_their_room_and_those_upstream():
    wrong = []
    for path in MODULES:
        room = path.relative_to(PACKAGE).parts[0]
        # What stands outside the rooms is their common ground.
        allowed = ROOMS[: ROOMS.index(room) + 1] if room in ROOMS else []
        for module in imports(path):
            package, _, rest = module.partition(".")
            imported = rest.split(".")[0]
            if package == "tracecal" and imported in ROOMS and imported not in allowed:
                wrong.append(f"{path.relative_to(PACKAGE)} imports from {imported}")
    assert not wrong


def test_adapters_stay_small_and_modules_know_no_snakemake():
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in ADAPTERS}
    assert not [path.name for path, count in lines.items() if count > 50]
    importing = {path: {module.split(".")[0] for module in imports(path)} for path in MODULES}
    assert not [path.name for path, names in importing.items() if "snakemake" in names]


def test_a_rooms_init_file_holds_one_sentence_that_says_what_the_room_is():
    for room in ROOMS:
        module = ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))
        sentence = ast.get_docstring(module)
        assert sentence and len(module.body) == 1, room
        assert sentence.endswith(".") and ". " not in sentence and "\n" not in sentence, room


def test_no_module_lies_loose_at_the_packages_root():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "errors.py"}
