"""What an edit reruns: of a caption or a table no analysis, of an analysis no decoding."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from trace_workflow.config.run import load_run
from trace_workflow.contents.contents import plan
from trace_workflow.jobs.code_hash import code_hash, import_closure
from tracecal.io.input_files import read_yaml

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "workflow_scripts"
PACKAGE = SCRIPTS / "trace_workflow"
PLAN = plan(load_run(read_yaml(ROOT / "config/paper.yaml"), "config", ROOT))
MODULES = sorted({table.module for table in PLAN.tables.values()})
# Scripts that take seconds: tables, figures, and what is said of them.
PRINTING = {
    "compare_with_paper",
    "describe_tables",
    "draw_figure",
    "tabulate_costs",
    "tell_findings",
    "write_table",
}
# What a script loads by name.
LOADED = {
    "analyse": sorted({analysis.module for analysis in PLAN.analyses.values()}),
    "estimate_family": sorted({family.module for family in PLAN.families.values()}),
    **{key: ["trace_workflow.models.vllm_engine"] for key in ("generate", "draw_samples")},
}
RUNNING_MODELS = [
    *("ask_p_true", "ask_verbalized", "audit_traces", "capture_hidden", "compare_samples"),
    *("draw_samples", "generate", "learn_lars", "learn_probe", "search_beams", "weigh_mars"),
    "weigh_token_sar",
]
OTHERS = sorted({path.stem for path in SCRIPTS.glob("[!_]*.py")} - PRINTING)


def folders(name):
    """The folders of the code that a script's results hang on."""
    closure = import_closure(SCRIPTS / f"{name}.py", *LOADED.get(name, []))
    return {path.parent for path in closure}


def test_a_changed_caption_reruns_no_analysis():
    """Captions are parameters of the rules that print them alone."""
    rules = {path: path.read_text(encoding="utf-8") for path in (ROOT / "rules").glob("*.smk")}
    printing = [text for text in rules.values() if "WORDS[" in text]
    scripts = set(re.findall(r"workflow_scripts/(\w+)\.py", "".join(printing)))
    assert scripts == PRINTING | {"copy_references", "make_explorer"}


@pytest.mark.parametrize("name", OTHERS)
def test_a_changed_table_or_figure_reruns_no_analysis_and_no_decoding(name):
    assert not {PACKAGE / "tables", PACKAGE / "figures", PACKAGE / "plan"} & folders(name)


@pytest.mark.parametrize("name", RUNNING_MODELS)
def test_a_changed_analysis_reruns_no_model(name):
    assert not {PACKAGE / "analyses", PACKAGE / "labels"} & folders(name)


def test_the_tables_of_a_file_share_its_hash_and_those_of_other_files_have_their_own():
    script = SCRIPTS / "write_table.py"
    assert len(MODULES) < len(PLAN.tables)
    assert len({code_hash(script, module) for module in MODULES}) == len(MODULES)
    files = {Path(import_module(module).__file__) for module in MODULES}
    for module in MODULES:
        assert files & {*import_closure(script, module)} == {Path(import_module(module).__file__)}
