"""The table model and its three writers."""

import csv as csv_module
import io
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

import polars as pl
import pytest

from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import escape, render_latex
from trace_workflow.tables.ranking_table import mark_best_of_row, rank_columns, rank_values
from trace_workflow.tables.table import (
    Column,
    Table,
    as_in_paper,
    format_number,
    header_spans,
)
from tracecal.errors import InputError

HOSTILE = "<script>alert('%_&$#{}~^\\\"')</script> é [x] a--b"
CITED = pl.col("id").replace_strict(dict.fromkeys("abc", "k2020"))
COLUMNS = (
    Column(("label",), "Method", align="left", cite=CITED),
    *rank_columns(
        [
            Column(("brier",), "Brier", "Task", "lower"),
            Column(("auroc",), "AUROC", "Task", "higher"),
        ]
    ),
    Column(("wins", "tasks"), "Wins"),
)


def table(label="A", caption="Caption.", **changes):
    rows = [
        ("a", label, 0.12345678901234, 0.8, 2, 3),
        ("b", "B", 0.2, None, 3, 3),
        ("c", "C", 0.1, 0.9, 0, 3),
    ]
    names = ["id", "label", "brier", "auroc", "wins", "tasks"]
    parts = {
        "name": "t",
        "title": "Title",
        "frame": pl.DataFrame(rows, schema=names, orient="row"),
        "columns": COLUMNS,
        "section": (pl.col("id") == "c").cast(pl.String),
        "titles": {"false": "First <group>"},
        "emphasis": "Bold: best.",
        "notes": ("A note.",),
    }
    return Table(caption=caption, **parts | changes)


def printed(column, **values):
    """How a column prints one row."""
    frame = pl.DataFrame([values])
    one = Table(frame, (column,))
    return one.rows[0][0].text


class Text(HTMLParser):
    """The visible text and the tags of a page."""

    def __init__(self, page):
        super().__init__()
        self.text, self.tags = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize(
    ("value", "decimals", "signed", "text"),
    [
        (0.0005001, 3, False, "0.001"),
        (-0.0831, 3, True, "−0.083"),
        (0.0391, 3, True, "+0.039"),
        (-0.0004, 3, True, "0.000"),
        (0.0, 3, True, "0.000"),
        (None, 3, False, "–"),
        (float("nan"), 3, False, "–"),
        (7, 3, False, "7"),
        ("text", 3, False, "text"),
    ],
)
def test_numbers_print_rounded_signed_and_without_negative_zero(value, decimals, signed, text):
    assert format_number(value, decimals, signed) == text


def test_ranks_share_ties_of_what_prints():
    assert rank_values([0.1234, 0.1229, 0.2, 0.3], "lower", 2) == ["best", "best", "second", None]
    assert rank_values([0.7, None, 0.9, 0.7], "higher", 3) == ["second", None, "best", "second"]
    assert rank_values([0.0539, 0.0541], "lower", 3) == [None, None]
    assert rank_values([0.5], "lower", 3) == [None]
    assert rank_values([], "lower", 3) == []


def test_cells_join_several_numbers():
    assert printed(Column(("wins", "tasks")), wins=2, tasks=3) == "2/3"
    assert printed(Column(("m", "sd"), joint=" ± "), m=0.774, sd=0.0151) == "0.774 ± 0.015"
    assert printed(Column(("m", "sd")), m=None, sd=None) == "–"


def test_a_column_may_print_rows_differently_and_in_other_words():
    frame = pl.DataFrame({"x": [0.126, 0.126], "digits": [1, 2], "gain": [False, True]})
    column = Column(("x",), decimals=pl.col("digits"), signed=pl.col("gain"))
    words = Column(("x",), printed=pl.format("about {}", "digits"))
    rows = Table(frame, (column, words)).rows
    assert [[cell.text for cell in row] for row in rows] == [
        ["0.1", "about 1"],
        ["+0.13", "about 2"],
    ]


def test_marks_follow_their_expression():
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0], "part": ["a", "a", "b"]})
    few = Column(("x",), mark=pl.when(pl.col("x") > 1).then(pl.lit("†")))
    assert [row[0].mark for row in Table(frame, (few,)).rows] == ["", "†", "†"]


def test_best_and_second_are_marked_among_all_and_among_some_rows():
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 2.0], "part": ["a", "a", "b", "b"]})

    def emphasis(**how):
        columns = rank_columns([Column(("x",), better="higher")], **how)
        return [row[0].emphasis for row in Table(frame, columns).rows]

    assert emphasis() == [None, "second", "best", "second"]
    assert emphasis(compared_rows=pl.col("part") == "a") == ["second", "best", None, None]


def test_the_better_of_a_row_is_bold_unless_both_print_alike():
    frame = pl.DataFrame({"x": [0.1, 0.2, 0.1001, None], "y": [0.2, 0.1, 0.1002, 0.3]})
    columns = mark_best_of_row([Column(("x",), better="lower"), Column(("y",), better="lower")])
    rows = Table(frame, tuple(columns)).rows
    bold = [tuple(cell.emphasis for cell in row) for row in rows]
    assert bold == [("best", None), (None, "best"), (None, None), (None, None)]


def test_spans_cover_neighbours_of_one_group_only():
    columns = [Column(("a",)), Column(("b",), group="X"), Column(("c",), group="X"), Column(("d",))]
    assert header_spans(columns) == [("", 1), ("X", 2), ("", 1)]


def test_a_column_that_the_frame_lacks_is_refused():
    with pytest.raises(ValueError, match="lacks auroc, brier"):
        table(frame=table().frame.drop("brier", "auroc"))


def test_csv_has_all_columns_at_full_precision():
    lines = list(csv_module.reader(io.StringIO(render_csv(table(HOSTILE)))))
    assert lines[0] == ["id", "label", "brier", "auroc", "wins", "tasks"]
    assert lines[1] == ["a", HOSTILE, "0.12345678901234", "0.8", "2", "3"]
    assert lines[2] == ["b", "B", "0.2", "", "3", "3"]


def test_latex_marks_best_second_groups_and_citations():
    text = render_latex(table())
    assert r"\multicolumn{2}{c}{Task}" in text
    assert r"\cmidrule(lr){2-3}" in text
    assert r"\multirow{2}{*}{Method}" in text
    assert r"\textit{First \textless{}group\textgreater{}}" in text
    assert r"A~\citep{k2020} & \underline{0.123} & \underline{0.800} & 2/3 \\" in text
    assert r"B~\citep{k2020} & 0.200 & -- & 3/3 \\" in text
    assert r"C~\citep{k2020} & \textbf{0.100} & \textbf{0.900} & 0/3 \\" in text
    assert r"Brier $\downarrow$ & AUROC $\uparrow$" in text
    assert r"\label{tab:t}" in text
    assert text.count(r"\midrule") == 2


def test_latex_escapes_every_label():
    assert escape("a_b%&$#{}~^\\") == (
        r"a\_b\%\&\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}"
    )
    assert escape("a---b\n c") == "a-{}-{}-b c"
    assert escape("a\f\0b\x7f\u2028c") == "a b c"
    assert escape("ΔBrier ± −1") == r"$\Delta$Brier $\pm$ $-$1"
    assert render_latex(table("[2pt]")).count("\n{}[2pt]") == 1


def test_a_citation_that_would_break_latex_is_refused():
    column = Column(("label",), "Method", cite=pl.lit("a}%"))
    bad = Table(pl.DataFrame({"label": ["A"]}), (column,))
    with pytest.raises(InputError, match="citation key"):
        render_latex(bad)


def test_html_escapes_labels_and_stands_alone():
    page = render_html(table(HOSTILE, HOSTILE, title=HOSTILE, notes=(HOSTILE,)))
    read = Text(page)
    assert "script" not in read.tags
    assert "".join(read.text).count(HOSTILE) == 5
    link = re.search(r'download="t.csv" href="data:text/csv;charset=utf-8,([^"]*)"', page)
    assert unquote(link[1]) == render_csv(table(HOSTILE)), "the page saves its own CSV"
    assert not re.search(r"https?:|src=|href=|url\(|@import", page.replace(link[0], ""))
    assert "<strong>0.100</strong>" in page
    assert "<u>0.123</u>" in page
    assert 'class="center absent">–</td>' in page
    assert "↓ lower is better, ↑ higher is better. Bold: best." in page


def test_paper_tables_leaves_out_what_is_added():
    columns = [replace(column, added=column.label == "Wins") for column in COLUMNS]
    columns[1] = replace(columns[1], added_mark=pl.lit("§"))
    whole = table(
        columns=tuple(columns), added=pl.col("id") == "b", footnotes=("† Partly.",), notes=("N.",)
    )
    plain = as_in_paper(whole)
    assert [row[0].text for row in plain.rows] == ["A", "C"]
    assert [column.label for column in plain.columns] == ["Method", "Brier", "AUROC"]
    assert {cell.mark for row in plain.rows for cell in row} == {""}
    assert plain.legend == ("† Partly.",)
    assert whole.legend[1:] == ("† Partly.", "N.")


def test_what_is_too_wide_for_a_page_stands_in_parts_with_the_names_of_rows():
    names = [f"a_rather_long_name_{place}" for place in range(12)]
    frame = pl.DataFrame({"label": ["A"], **{name: [0.5] for name in names}})
    columns = (Column(("label",), "Method", align="left"), *(Column((n,), n) for n in names))
    text = render_latex(Table(frame, columns, name="t"))
    assert text.count(r"\begin{tabular}") == text.count("Method &") == 3
    assert text.count(r"\begin{table*}") == text.count(r"\label{tab:t}") == 1
    many = pl.concat([frame] * 30)
    long = render_latex(Table(many, columns, name="t"))
    assert long.count(r"\begin{table") == 3, "a page each"
    assert [part[:1] for part in long.split(r"\label{tab:t")[1:]] == ["}", "-", "-"]
    assert long.count(r"\addtocounter{table}{-1}") == 2


def test_html_table_is_rectangular():
    page = render_html(table())
    for line in re.findall(r"<tr>(.*?)</tr>", page.split("</thead>")[1], re.DOTALL):
        widths = [re.search(r'colspan="(\d+)"', tag) for tag in re.findall("<t[hd][^>]*>", line)]
        assert sum(int(width[1]) if width else 1 for width in widths) == 4


@pytest.mark.pages
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_latex_compiles_with_hostile_labels(tmp_path):
    (tmp_path / "t.tex").write_text(render_latex(table(HOSTILE, HOSTILE, notes=(HOSTILE,))))
    (tmp_path / "paper.tex").write_text(
        "\\documentclass[twocolumn]{article}\\usepackage{booktabs,multirow,graphicx,natbib}"
        "\\begin{document}\\input{t}\\end{document}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
