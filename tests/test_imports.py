"""Jobs load no library that they do not use: loading takes longer than most jobs' work."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import polars
import pytest

from trace_workflow.jobs.code_hash import import_closure

SCRIPTS = Path(__file__).resolve().parents[1] / "workflow_scripts"
HEAVY = {
    *("torch", "transformers", "sklearn", "scipy", "scipy.stats", "matplotlib", "pandas"),
    *("datasets", "snakemake"),
}
# What runs or makes a language model or an encoder loads it: there is no saying of these.
MODELS = {
    *("generate", "audit_traces", "search_beams", "capture_hidden", "draw_samples"),
    *("ask_p_true", "ask_verbalized", "weigh_token_sar", "weigh_mars", "compare_samples"),
    *("learn_probe", "learn_lars"),
    *("unpack_model",),
}
USED = {
    "replay_answers": {"torch", "transformers", "scipy"},
    "control_risk": {"scipy"},
    "draw_figure": {"matplotlib"},
    "stage_rows": {"datasets", "pandas"},
}
JOBS = {path.stem: path for path in sorted(SCRIPTS.glob("[!_]*.py")) if path.stem not in MODELS}
# Loaded by name, one by each job of its rule.
BY_NAME = [
    f"import {folder.replace('/', '.')}.{path.stem}"
    for folder in ("tracecal/estimators", "trace_workflow/tables")
    for path in sorted((SCRIPTS / folder).glob("[!_]*.py"))
]


def loaded(*lines):
    """The heavy libraries that the import statements `lines` load, in a process of its own."""
    program = ["import sys", *lines, f"print(sorted({HEAVY!r} & sys.modules.keys()))"]
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(program)],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ast.literal_eval(run.stdout))


def imports(script):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    return [ast.unparse(one) for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]


def test_a_job_loads_nothing_heavy():
    """Nor does what a job loads by name. One process is enough for what all of them lack."""
    light = [line for name in JOBS.keys() - USED for line in imports(JOBS[name])]
    assert loaded(*light, *BY_NAME) == set()


@pytest.mark.parametrize("name", USED)
def test_a_job_loads_nothing_heavy_but_what_it_uses(name):
    assert loaded(*imports(JOBS[name])) <= USED[name]


def test_reading_loads_nothing_heavy():
    """Arrow loads pandas where it makes an array of Python's objects."""
    row = {"id": "a", "answer": "The capital is Paris.", "logprobs": [-0.5] * 4}
    row |= {"tokens": ["The", " capital", " is", " Paris."], "entropies": [0.5] * 4}
    rows = [row, row | {"id": "b", "logprobs": None}]
    assert loaded("import tracecal", f"tracecal.read_answers({rows!r})") == set()


def test_what_is_heavy_would_be_seen():
    assert loaded("import scipy") == {"scipy"}


# What a start of the workflow needs beside Snakemake; docs/reference/installation.md names them.
STARTED_WITH = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection", "yaml"}


def test_a_start_of_the_workflow_loads_no_other_library():
    rules = [SCRIPTS.parent / "Snakefile", *sorted((SCRIPTS.parent / "rules").glob("*.smk"))]
    lines = [
        line
        for file in rules
        for line in re.findall(
            r"^(?:from|import) trac.*$", file.read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert len(lines) > 20
    told = "{name.partition('.')[0] for name in sys.modules}"
    program = ["import sys", *lines, f"print(sorted({told}))"]
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(program)],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {*ast.literal_eval(run.stdout)}
    folders = Path(polars.__file__).parents[1].glob("[!_]*")
    libraries = {path.name for path in folders if path.is_dir()}
    assert loaded & libraries == STARTED_WITH


# Beyond directives, functions and command line: what Snakemake's documentation does not name.
UNDOCUMENTED = re.compile(
    r"\bworkflow\.(?!smk|rst|source_path\b|configfiles\b)\w+|\brules\.\w+\.params|\b_workflow\b|"
    r"snakemake\.(?!input|output|params|wildcards|resources|threads|log|config|logging|utils)[a-z_]+\b|"
    r"sys\.(meta_path|path_hooks)"
)


def test_nothing_of_snakemake_or_python_is_used_but_what_is_documented():
    root = SCRIPTS.parent
    files = [root / "Snakefile", *(root / "rules").glob("*.smk"), *SCRIPTS.rglob("*.py")]
    found = {
        f"{file.relative_to(root)}: {match[0]}"
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if (match := UNDOCUMENTED.search(line.partition("#")[0]))
    }
    assert found == set()


def test_what_programs_import_is_no_part_of_a_rules_code():
    for script in JOBS.values():
        files = {path.relative_to(SCRIPTS).as_posix() for path in import_closure(script)}
        apart = ("tracecal/__init__", "tracecal/cli", "tracecal/serving", "tracecal/sklearn")
        assert not {file for file in files if file.startswith(apart)}
