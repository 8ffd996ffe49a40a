"""A table as a LaTeX float for booktabs, multirow, natbib and pifont.

Everything is set in 7 points, for a two-column A4 page such as the ACL's: a narrow table takes one
column, a wider one the whole page and leaves out its added columns, and one that is wider still is
broken into several below one another, each with the names of its rows.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tracecal.errors import InputError
from tracecal.writers.table import Cell, Column, Table, header_spans

CHARACTERS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
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
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "→": r"$\rightarrow$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "✓": r"\ding{51}",
    "✗": r"\ding{55}",
    "\u2003": r"\quad ",
    "△": r"$\triangle$",
    "Δ": r"$\Delta$",
    "Σ": r"$\Sigma$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
}
EMPHASIS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", None: "%s"}
RULE = r"\midrule"
SIZE = r"\fontsize{7}{8.4}\selectfont"
# Widths in points: of a column, of the page, of the space between columns, and of a citation (a
# name and a year).
NARROW, PAGE, BETWEEN, CITATION = 219, 455, 4, 72
# Approximate widths of Times' characters at 7 points: lower case, upper case, and exceptions.
LOWER, UPPER = 3.5, 4.8
WIDTHS = {" ": 1.8} | dict.fromkeys("ijl.,;:/|'()[]-", 2.1)
WIDTHS |= dict.fromkeys("mw%+−±Δ‡†✓✗△\u2003", UPPER)
# Rows and lines of notes that fit on a page.
LINES = 55


def escape(text: str) -> str:
    """Plain text as LaTeX; white space, line ends included, becomes one space."""
    spaced = re.sub("-(?=-)", "-\u200b", re.sub(r"[ \t\r\n]+", " ", text).strip(" "))
    return "".join(CHARACTERS.get(character, character) for character in spaced)


def render(table: Table) -> str:
    """The float, or one for each part where they do not fit on a page together."""
    whole, table = table, table.narrow
    legend = list(table.legend)
    if len(table.columns) < len(whole.columns):
        legend.append(f"Further columns: {table.name}.csv and {table.name}.html.")
    panels = list(_panels(table))
    notes = [rf"{{\raggedright {escape(note)}\par}}" for note in legend]
    title = rf"\textbf{{{escape(table.title)}.}}"
    lines = ["% Generated: edits are lost. Needs booktabs, multirow, natbib, pifont."]
    for place, (part, below) in enumerate(_parts(table, panels, notes), 1):
        caption, label = f"{title} {escape(table.caption)}", table.name
        if place > 1:
            lines.append(r"\addtocounter{table}{-1}")
            caption, label = f"{title} Part {place}.", f"{label}-{place}"
        lines += _float(table, part, below, caption, label)
    return "\n".join(lines) + "\n"


def _parts(
    table: Table, panels: Sequence[list[int]], notes: Sequence[str]
) -> list[tuple[Sequence[list[int]], Sequence[str]]]:
    """The panels and notes of each float: of one, if they fit on a page; else a float for each
    panel, with the notes below the first or, where they do not fit there, in the last.
    """
    rows = len(table.rows) + len(table.groups) + 3
    written = sum(1 + len(note) // 100 for note in notes)
    if len(panels) * rows + written <= LINES:
        return [(panels, notes)]
    below = rows + written <= LINES
    parts = [([panel], notes if below and not place else ()) for place, panel in enumerate(panels)]
    return parts if below else [*parts, ((), notes)]


def _float(
    table: Table, panels: Sequence[list[int]], notes: Sequence[str], caption: str, label: str
) -> list[str]:
    narrow = panels and max(sum(_widths(table, panel)) for panel in panels) <= NARROW
    name, width = ("table", r"\columnwidth") if narrow else ("table*", r"\textwidth")
    return [
        rf"\begin{{{name}}}[t]",
        r"\centering",
        SIZE,
        rf"\setlength{{\tabcolsep}}{{{BETWEEN / 2:g}pt}}",
        r"\renewcommand{\arraystretch}{1.04}",
        *(line for panel in panels for line in _panel(table, panel, width)),
        *([r"\vspace{1pt}", *notes] if notes else []),
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{label}}}",
        rf"\end{{{name}}}",
    ]


def _panels(table: Table) -> Iterator[list[int]]:
    """The columns, by place, of each panel: as many groups as fit across the page.

    The first columns, which name the rows, are in every panel.
    """
    widths, columns = _widths(table, range(len(table.columns))), table.columns
    named = next(
        (place for place, column in enumerate(columns) if column.group or column.align != "left"), 1
    )
    panel, start = list(range(named)), named
    for _, width in header_spans(columns[named:]):
        block = list(range(start, start + width))
        if len(panel) > named and sum(widths[place] for place in [*panel, *block]) > PAGE:
            yield panel
            panel = list(range(named))
        panel, start = [*panel, *block], start + width
    yield panel


def _widths(table: Table, places: Iterable[int]) -> list[float]:
    """Approximate printed widths of columns (points); a group's heading is shared among its own."""
    grouped = Counter(column.group for column in table.columns)

    def width(place: int) -> float:
        column = table.columns[place]
        widest = max((_cell_width(row[place]) for row in table.rows), default=0)
        above = _width(column.group) / grouped[column.group]
        return max(_width(column.heading), above, column.wrap or widest) + BETWEEN

    return [width(place) for place in places]


def _cell_width(cell: Cell) -> float:
    cited = CITATION * len(cell.citation.split(",")) if cell.citation else 0
    return _width(cell.text + cell.mark) + cited


def _width(text: str) -> float:
    return sum(WIDTHS.get(char, UPPER if char.isupper() else LOWER) for char in text)


def _panel(table: Table, places: Sequence[int], width: str) -> list[str]:
    """A tabular of some columns, never scaled down: a wide one extends into the margins."""
    columns = [table.columns[place] for place in places]
    align = "".join(
        rf"p{{{column.wrap}pt}}" if column.wrap else column.align[0] for column in columns
    )
    return [
        rf"\makebox[{width}][c]{{%",
        rf"\begin{{tabular}}{{@{{}}{align}@{{}}}}",
        r"\toprule",
        *_header(columns),
        RULE,
        *_body(table, places),
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


def _body(table: Table, places: Sequence[int]) -> list[str]:
    lines: list[str] = []
    for group in table.groups:
        lines += [RULE] if lines else []
        if group.title:
            across = rf"\multicolumn{{{len(places)}}}{{@{{}}c@{{}}}}"
            lines.append(_line([rf"{across}{{\textit{{{escape(group.title)}}}}}"]))
        lines += [_line(_cell(row[place]) for place in places) for row in group.rows]
    return lines


def _cell(cell: Cell) -> str:
    text = EMPHASIS[cell.emphasis] % escape(cell.text) + escape(cell.mark)
    return f"{text}~\\citep{{{_key(cell.citation)}}}" if cell.citation else text


def _key(citation: str) -> str:
    if not re.fullmatch(r"[\w:.+/-]+(,[\w:.+/-]+)*", citation, re.ASCII):
        raise InputError(
            f"the citation key {citation!r} would break a LaTeX document; use letters, digits and "
            "any of : . + / - _, with commas between several keys."
        )
    return citation


def _line(cells: Iterable[str]) -> str:
    line = " & ".join(cells) + r" \\"
    return "{}" + line if line.startswith(("[", "*")) else line
