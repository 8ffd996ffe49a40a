"""Tables in LaTeX documents: they compile together, fit the page, and cite what there is."""

import re
from dataclasses import replace

import polars as pl
import pytest

from support import citations, synthetic
from support.synthetic import ENTRIES, MODELS, TASKS
from support.typeset import SETUPS, complaints, typeset
from tests.trace_workflow.tables.test_risk_coverage import control
from trace_workflow.analyses.risk_coverage import risk_coverage
from trace_workflow.config import paper
from trace_workflow.contents.comparison import protocol_rows
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.estimator import Entry
from tracecal.estimators.registry import ESTIMATORS

TEXT = paper.BIBLIOGRAPHY.read_text(encoding="utf-8")
KNOWN = set(citations.keys(TEXT))
COMPARED = [
    Entry(one.id, one.label, one.group, one.role, one.citation)
    for one in ESTIMATORS
    if one.role in ("baseline", "trace")
]


def tables():
    metrics = synthetic.study(entries=COMPARED, splits=2)
    main = {"model": "tiny_a", "tasks": list(TASKS)}
    cross = {"models": list(MODELS), "tasks": list(TASKS)}
    rates = (0.05, 0.1, 0.2, 0.3)
    risk_control = control(*((rate, None if rate < 0.1 else 0.5, 5, 1) for rate in rates), n=9)
    pairs = [(model, task) for model in MODELS for task in TASKS]
    frames = synthetic.frames(metrics, COMPARED, main=main, cross=cross) | {
        "accuracy": synthetic.accuracy(),
        "risk_coverage": risk_coverage([risk_control] * len(pairs), pairs),
    }
    settings = synthetic.settings(
        COMPARED, MODELS, TASKS, {"methods": protocol_rows(ESTIMATORS)}, main=main, cross=cross
    )
    names = "main_comparison cross_model protocol_comparison risk_coverage".split()
    return [synthetic.made(name, frames, settings) for name in names]


def cited(name, caption, keys):
    """A table of one row that cites `keys`."""
    column = Column(("label",), "Method", align="left", cite=pl.lit(keys))
    return Table(pl.DataFrame({"label": ["A"]}), (column,), name=name, title="T", caption=caption)


def written(made, folder):
    folder.mkdir()
    paths = [folder / f"{table.name}.tex" for table in made]
    for table, path in zip(made, paths, strict=True):
        path.write_text(render_latex(table), encoding="utf-8")
    return paths


@pytest.mark.pages
@pytest.mark.parametrize("setup", SETUPS)
def test_tables_compile_together_and_nothing_is_too_wide(setup, tmp_path):
    paths = written(tables(), tmp_path / "tables")
    assert typeset(paths, paper.BIBLIOGRAPHY, setup, tmp_path) == []
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000


@pytest.mark.pages
@pytest.mark.parametrize("setup", SETUPS)
def test_what_is_too_wide_or_missing_is_noticed(setup, tmp_path):
    bad = cited("bad", f"A caption with {'W' * 200}.", "nobody1999")
    found = "\n".join(typeset(written([bad], tmp_path / "t"), paper.BIBLIOGRAPHY, setup, tmp_path))
    for sign in ("Overfull", "nobody1999' on page", 'database entry for "nobody1999"'):
        assert sign in found


@pytest.mark.pages
def test_the_whole_bibliography_compiles(tmp_path):
    made = written([cited("all", "C.", ",".join(sorted(KNOWN)))], tmp_path / "t")
    assert typeset(made, paper.BIBLIOGRAPHY, "minimal", tmp_path) == []
    entries = (tmp_path / "paper.bbl").read_text(encoding="utf-8")
    assert entries.count("\\bibitem") == len(KNOWN)


def test_a_log_broken_at_79_characters_is_read_whole():
    line = "LaTeX Warning: Citation `" + "k" * 60 + "' on page 1 undefined on input line 3."
    assert complaints(line[:79] + "\n" + line[79:] + "\n") == [line]
    assert complaints("Overfull \\hbox (2.9pt too wide) in paragraph at lines 1--2\n") == []


def test_every_key_of_the_registry_is_in_the_bibliography():
    assert {one.citation for one in ESTIMATORS} <= KNOWN


def test_every_key_that_tables_cite_is_in_the_bibliography():
    found = set().union(*(citations.cited(render_latex(table)) for table in tables()))
    assert {entry.citation for entry in ENTRIES if entry.role == "baseline"} - {
        "szymczyk2026"
    } <= found
    assert found <= KNOWN


def test_entries_are_whole_and_named_once():
    assert len(citations.keys(TEXT)) == len(KNOWN) > 40
    for entry in re.split(r"\n(?=@)", TEXT)[1:]:
        fields = re.findall(r"^  (\w+) = \{", entry, re.MULTILINE)
        assert {"author", "title", "year"} <= set(fields), entry
        assert {"booktitle", "journal"} & set(fields), entry
        assert entry.count("{") == entry.count("}")


def test_keys_and_citations_are_read():
    assert citations.keys("@book{a_b,\n x}\n@misc{c:2,") == ["a_b", "c:2"]
    assert citations.cited(r"A~\citep{a,b c}\citet{d} \cite{e}") == {"a", "b c", "d", "e"}


def wide(added):
    """A table of more columns than fit, `added` of which are beyond the paper's."""
    names = ["label", *(f"c{place}" for place in range(14))]
    columns = [Column((name,), f"Value {name}", f"Group {name}") for name in names[1:]]
    columns = [replace(c, added=place < added) for place, c in enumerate(columns)]
    frame = pl.DataFrame({name: ["A"] for name in names})
    return Table(frame, (Column(("label",), "M", align="left"), *columns), name="w", title="T")


def test_a_wide_table_leaves_out_its_added_columns_and_says_where_they_are():
    text = render_latex(wide(6))
    assert "Value c5" not in text and "Value c6" in text
    assert "Further columns: w.csv and w.html." in text
    assert len(re.findall(r"\\begin\{tabular\}", text)) == 1
    narrow = replace(wide(6), columns=wide(6).columns[:8])
    assert "Value c5" in render_latex(narrow) and "Further" not in render_latex(narrow)


def test_the_main_comparison_on_four_tasks_is_one_float_with_its_average():
    text = render_latex(tables()[0])
    assert len(re.findall(r"\\begin\{tabular\}", text)) == 1
    assert r"{c}{Avg.}" in text
