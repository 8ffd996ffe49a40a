"""A table as LaTeX: a float, or several where its panels do not fit on a page together."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from trace_workflow.tables.table import Cell, Column, Table, header_spans
from tracecal.errors import InputError

# Commands of mathematics, each behind its character.
MATHEMATICS = (
    "±pm ×times ·cdot ≤leq ≥geq ≈approx ↓downarrow ↑uparrow →rightarrow †dagger ‡ddagger △triangle "
    "ΔDelta ΣSigma αalpha βbeta γgamma λlambda μmu ρrho σsigma τtau"
)
CHARACTERS = {
    **{character: rf"\{character}" for character in "{}$&#%_"},
    **{command[0]: rf"$\{command[1:]}$" for command in MATHEMATICS.split()},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{''}",
    "`": r"\textasciigrave{}",
    "\u200b": "{}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "−": "$-$",
    "§": r"\S{}",
    "✓": r"\ding{51}",
    "✗": r"\ding{55}",
    "\u2003": r"\quad ",
}
EMPHASIS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", None: "%s"}
RULE = r"\midrule"
FONT_SIZE = r"\fontsize{7}{8.4}\selectfont"
# Widths in points: of a text column, of the page, of the space between columns, and of a citation
# (a name and a year).
COLUMN_WIDTH, PAGE_WIDTH, COLUMN_SPACE, CITATION_WIDTH = 219, 455, 4, 72
# Approximate widths of Times' characters at 7 points: lower case, upper case, and exceptions.
LOWER, UPPER = 3.5, 4.8
WIDTHS = {" ": 1.8} | dict.fromkeys("ijl.,;:/|'()[]-", 2.1)
WIDTHS |= dict.fromkeys("mw%+−±Δ‡†✓✗△\u2003", UPPER)
LINES_OF_PAGE = 55  # rows and lines of notes

Panel = Sequence[int]  # the places of its columns


def escape(text: str) -> str:
    """Plain text as LaTeX, on one line.

    >>> escape("50 % of a_b")
    '50 \\\\% of a\\\\_b'
    """
    blanks = r"[ \x00-\x1f\x7f-\x9f\u2028\u2029]+"  # TeX stops at some of them
    spaced = re.sub("-(?=-)", "-\u200b", re.sub(blanks, " ", text).strip(" "))
    return "".join(CHARACTERS.get(character, character) for character in spaced)


def render_latex(table: Table) -> str:
    """The table's floats, with its narrow columns alone."""
    narrow = table.narrow
    legend = list(narrow.legend)
    if len(narrow.columns) < len(table.columns):
        legend.append(f"Further columns: {table.name}.csv and {table.name}.html.")
    panels = list(_panels(narrow))
    notes = [rf"{{\raggedright {escape(note)}\par}}" for note in legend]
    title = rf"\textbf{{{escape(table.title)}.}}"
    lines = ["% Generated: edits are lost. Needs booktabs, multirow, natbib, pifont."]
    for number, (float_panels, float_notes) in enumerate(_floats(narrow, panels, notes), 1):
        caption, label = f"{title} {escape(table.caption)}", table.name
        if number > 1:
            lines.append(r"\addtocounter{table}{-1}")
            caption, label = f"{title} Part {number}.", f"{label}-{number}"
        lines += _float(narrow, float_panels, float_notes, caption, label)
    return "\n".join(lines) + "\n"


def _floats(
    table: Table, panels: Sequence[Panel], notes: Sequence[str]
) -> list[tuple[Sequence[Panel], Sequence[str]]]:
    """The panels and notes of each float.

    All fit into one, or each panel gets its own; the notes then stand below the first, or, where
    they do not fit there, in one more.
    """
    rows = len(table.rows) + len(table.groups) + 3
    note_lines = sum(1 + len(note) // 100 for note in notes)
    if len(panels) * rows + note_lines <= LINES_OF_PAGE:
        return [(panels, notes)]
    below = rows + note_lines <= LINES_OF_PAGE
    floats = [([panel], notes if below and not index else ()) for index, panel in enumerate(panels)]
    return floats if below else [*floats, ((), notes)]


def _float(
    table: Table, panels: Sequence[Panel], notes: Sequence[str], caption: str, label: str
) -> list[str]:
    fits = panels and max(sum(_widths(table, panel)) for panel in panels) <= COLUMN_WIDTH
    name, width = ("table", r"\columnwidth") if fits else ("table*", r"\textwidth")
    return [
        rf"\begin{{{name}}}[t]",
        r"\centering",
        FONT_SIZE,
        rf"\setlength{{\tabcolsep}}{{{COLUMN_SPACE / 2:g}pt}}",
        r"\renewcommand{\arraystretch}{1.04}",
        *(line for panel in panels for line in _tabular(table, panel, width)),
        *([r"\vspace{1pt}", *notes] if notes else []),
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{label}}}",
        rf"\end{{{name}}}",
    ]


def _panels(table: Table) -> Iterator[list[int]]:
    """As many groups of columns as fit across the page, panel by panel.

    The first columns, which name the rows, are in every panel.
    """
    widths, columns = _widths(table, range(len(table.columns))), table.columns
    n_names = next(
        (index for index, column in enumerate(columns) if column.group or column.align != "left"), 1
    )
    panel, start = list(range(n_names)), n_names
    for _, width in header_spans(columns[n_names:]):
        block = list(range(start, start + width))
        if len(panel) > n_names and sum(widths[index] for index in [*panel, *block]) > PAGE_WIDTH:
            yield panel
            panel = list(range(n_names))
        panel, start = [*panel, *block], start + width
    yield panel


def _widths(table: Table, indices: Iterable[int]) -> list[float]:
    """Approximate printed widths of columns (points); a group's columns share its heading."""
    group_sizes = Counter(column.group for column in table.columns)

    def width(index: int) -> float:
        column = table.columns[index]
        widest = max((_cell_width(row[index]) for row in table.rows), default=0)
        above = _width(column.group) / group_sizes[column.group]
        return max(_width(column.heading), above, column.wrap or widest) + COLUMN_SPACE

    return [width(index) for index in indices]


def _cell_width(cell: Cell) -> float:
    citations = CITATION_WIDTH * len(cell.citation.split(",")) if cell.citation else 0
    return _width(cell.text + cell.mark) + citations


def _width(text: str) -> float:
    return sum(WIDTHS.get(char, UPPER if char.isupper() else LOWER) for char in text)


def _tabular(table: Table, panel: Panel, width: str) -> list[str]:
    """A panel, never scaled down: a wide one extends into the margins."""
    columns = [table.columns[index] for index in panel]
    align = "".join(
        rf"p{{{column.wrap}pt}}" if column.wrap else column.align[0] for column in columns
    )
    return [
        rf"\makebox[{width}][c]{{%",
        rf"\begin{{tabular}}{{@{{}}{align}@{{}}}}",
        r"\toprule",
        *_header(columns),
        RULE,
        *_body(table, panel),
        r"\bottomrule",
        r"\end{tabular}%",
        r"}\par\vspace{3pt}",
    ]


def _header(columns: Sequence[Column]) -> list[str]:
    if not any(column.group for column in columns):
        return [_line(escape(column.heading) for column in columns)]
    above, rules, start = [], [], 0
    for group, width in header_spans(columns):
        if group:
            above.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(group)}}}")
            rules.append(rf"\cmidrule(lr){{{start + 1}-{start + width}}}")
        else:
            above.append(rf"\multirow{{2}}{{*}}{{{escape(columns[start].heading)}}}")
        start += width
    below = [escape(column.heading) if column.group else "" for column in columns]
    return [_line(above), *rules, _line(below)]


def _body(table: Table, panel: Panel) -> list[str]:
    lines: list[str] = []
    for group in table.groups:
        lines += [RULE] if lines else []
        if group.title:
            across = rf"\multicolumn{{{len(panel)}}}{{@{{}}c@{{}}}}"
            lines.append(_line([rf"{across}{{\textit{{{escape(group.title)}}}}}"]))
        lines += [_line(_cell(row[index]) for index in panel) for row in group.rows]
    return lines


def _cell(cell: Cell) -> str:
    text = EMPHASIS[cell.emphasis] % escape(cell.text) + escape(cell.mark)
    return f"{text}~\\citep{{{_citation_key(cell.citation)}}}" if cell.citation else text


def _citation_key(citation: str) -> str:
    if not re.fullmatch(r"[\w:.+/-]+(,[\w:.+/-]+)*", citation, re.ASCII):
        raise InputError(
            f"the citation key {citation!r} would break a LaTeX document; use letters, digits and "
            "any of : . + / - _, with commas between several keys."
        )
    return citation


def _line(cells: Iterable[str]) -> str:
    line = " & ".join(cells) + r" \\"
    return "{}" + line if line.startswith(("[", "*")) else line
