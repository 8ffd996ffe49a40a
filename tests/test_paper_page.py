"""docs/background/paper_and_code.md names what is there, and leaves nothing of the paper out."""

import re
from pathlib import Path

import pytest

from support.paper_source import read_paper
from tracecal.io.input_files import read_yaml

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/background/paper_and_code.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
SHOWN = {
    name: words
    for page in read_yaml(ROOT / "report/contents.yaml").values()
    for name, words in page.items()
}
NAMED = re.findall(r"`((?:tracecal|trace_workflow)(?:\.\w+)+)`", PAGE)


def rules_on_page():
    rows = re.findall(r"^\|.*\| (.*) \|$", SECTIONS["Sections and equations"], re.MULTILINE)
    named = [name for cell in rows for name in re.findall(r"`(\w+)`", cell)]
    return {*named, *re.findall(r"rule `(\w+)`", SECTIONS["Not in the paper"])}


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_a_name_is_there(name):
    parts = name.split(".")
    place = ROOT / "workflow_scripts"
    while parts and not place.with_suffix(".py").is_file():
        place /= parts.pop(0)
        if place.is_dir() and not parts:
            return
    source = place.with_suffix(".py").read_text(encoding="utf-8")
    for member in parts:
        assert re.search(rf"^(?:def|class) {member}\b|^(?:\w+, )*{member}\b.* = ", source, re.M), (
            name
        )


def test_the_rules_are_there():
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "rules").glob("*.smk"))
    missing = rules_on_page() - {*re.findall(r"^rule (\w+):", rules, re.MULTILINE)}
    assert not missing


@pytest.mark.parametrize("kind", ["Tables", "Figures"])
def test_tables_and_figures_are_there_and_numbered(kind):
    rows = re.findall(r"^\| \w+ (\d+), .* \| `(\w+)` \|$", SECTIONS[kind], re.MULTILINE)
    assert [int(number) for number, _ in rows] == [*range(1, len(rows) + 1)]
    assert {name for _, name in rows} <= {*SHOWN}


def test_no_table_figure_or_section_of_the_paper_is_left_out(shared_data):
    paper = read_paper(shared_data)
    for kind, label in (("Tables", "tab"), ("Figures", "fig")):
        rows = re.findall(r"^\| (?:Table|Figure) \d+", SECTIONS[kind], re.MULTILINE)
        assert len(rows) == len(re.findall(rf"\\label{{{label}:", paper))
    body = paper[paper.index(r"\section{Method}") :]
    leaves = re.findall(r"\\subsection{(.+?)}", body)
    leaves += re.findall(r"\\section{(.+?)}", body[body.index(r"\appendix") :])
    for title in {*leaves} - {"Supplementary Experimental Results"}:
        assert title in SECTIONS["Sections and equations"], title
