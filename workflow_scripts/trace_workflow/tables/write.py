"""A table as LaTeX, CSV and HTML, and writing the three files."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined

from trace_workflow.tables.table import Cell, Column, Table, header_spans
from tracecal.errors import InputError
from tracecal.io.files import read_checked, write_checked, write_text

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
NARROW, LATEX_PAGE, BETWEEN, CITATION = 219, 455, 4, 72
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


def render_latex(table: Table) -> str:
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
        if len(panel) > named and sum(widths[place] for place in [*panel, *block]) > LATEX_PAGE:
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


# A table as CSV: its whole frame at full precision.


# What a spreadsheet would execute; such a text gets an apostrophe in front.
FORMULA = re.compile(r"[=+\-@\t\r]")


def render_csv(table: Table) -> str:
    """One header line, one line per row; null is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.frame.columns)
    writer.writerows([_guarded(value) for value in row] for row in table.frame.iter_rows())
    return text.getvalue()


def _guarded(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def columns(path: str | Path) -> list[str]:
    """The names of a table's columns."""
    return next(csv.reader(io.StringIO(read_checked(path), newline="")))


def read(path: str | Path) -> list[dict[str, str]]:
    """The lines of a table's CSV as text by column; null is empty."""
    return list(csv.DictReader(io.StringIO(read_checked(path), newline="")))


# A table as one self-contained HTML page, for reading and for the report.


HTML_PAGE = """\
{% macro grid(table, head, extent) -%}
<table class="{{ extent }}">
<thead>
{% for line in head -%}
<tr>
{%- for c in line -%}
<th class="{{ c.align }}{{ ' span' if c.across > 1 or c.spans }}"
{%- if c.across > 1 %} colspan="{{ c.across }}"{% endif %}
{%- if c.down > 1 %} rowspan="{{ c.down }}"{% endif %}
{{- '' }} scope="{{ 'colgroup' if c.spans else 'col' }}">
{%- if c.spans %}<span><b>{{ c.text }}</b></span>{% else %}{{ c.text }}{% endif %}</th>
{%- endfor -%}
</tr>
{% endfor -%}
</thead>
{% for group in table.groups -%}
<tbody>
{% if group.title -%}
<tr><th class="title" scope="rowgroup" colspan="{{ table.columns | length }}">
<span>{{- group.title }}</span></th></tr>
{% endif -%}
{% for row in group.rows -%}
<tr>
{%- for cell in row -%}
{% set column = table.columns[loop.index0] -%}
{% set align = column.align + (" wrap" if column.wrap else "") -%}
{% if loop.first -%}
<th class="{{ align }}" scope="row">{{ cell.text }}
{%- if cell.mark %}<sup>{{ cell.mark }}</sup>{% endif %}</th>
{%- else -%}
<td class="{{ align }}{{ ' absent' if cell.text == '–' }}">
{%- if cell.emphasis == "best" %}<strong>{{ cell.text }}</strong>
{%- elif cell.emphasis == "second" %}<u>{{ cell.text }}</u>
{%- else %}{{ cell.text }}{% endif %}
{%- if cell.mark %}<sup>{{ cell.mark }}</sup>{% endif %}
{%- if cell.sd %}<span class="sd"> ± {{ cell.sd }}</span>{% endif %}</td>
{%- endif %}
{%- endfor -%}
</tr>
{% endfor -%}
</tbody>
{% endfor -%}
</table>
{%- endmacro -%}
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ table.title }}</title>
<style>
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1f23; --soft: #3c4249; --faint: #59616a;
  --rule: #9aa1a9; --hover: #f2f5f8; --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --paper: #16191d; --ink: #e6e8eb; --soft: #c3c8ce;
  --faint: #9fa7b0; --rule: #565e67; --hover: #22272d; --link: #7db7f5; } }
body { margin: 1.5rem; background: var(--paper); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
figure { margin: 0; width: fit-content; max-width: 100%; }
.scroll { overflow: auto; max-height: 92vh; }
.full, #further:checked ~ .scroll .narrow { display: none; }
#further:checked ~ .scroll .full { display: table; }
figcaption, .notes { max-width: 62rem; }
figcaption { margin-bottom: .8rem; color: var(--soft); }
figcaption b { color: var(--ink); }
table { border-collapse: collapse; border-top: 2px solid var(--ink);
  border-bottom: 2px solid var(--ink); font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .2rem .7rem; font-weight: normal; }
.left { text-align: left; } .center { text-align: center; } .right { text-align: right; }
.wrap { white-space: normal; min-width: 22rem; }
thead { position: sticky; top: 0; z-index: 2; background: var(--paper); }
thead th { vertical-align: bottom; }
thead tr:last-child th, thead th[rowspan] { border-bottom: 1px solid var(--ink);
  padding-bottom: .35rem; }
thead th.span { padding-top: .4rem; }
thead th.span span { display: block; border-bottom: 1px solid var(--rule); padding-bottom: .15rem; }
tbody + tbody { border-top: 1px solid var(--rule); }
tbody th.title { text-align: left; font-style: italic; color: var(--faint); padding-top: .45rem; }
thead th.span b { position: sticky; left: var(--named); right: 0; font-weight: normal; }
thead tr:first-child th:first-child, tbody th[scope=row] { position: sticky; left: 0;
  background: var(--paper); z-index: 1; }
tbody th.title span { position: sticky; left: .7rem; }
tbody tr:hover td, tbody tr:hover th[scope=row] { background: var(--hover); }
sup { line-height: 0; }
td.absent, .sd, .tools { color: var(--faint); }
.sd { display: none; }
#deviations:checked ~ .scroll .sd { display: inline; }
.tools { font-size: 13px; margin-right: 1.2rem; }
a { color: var(--link); }
.notes { margin-top: .7rem; color: var(--faint); font-size: 13px; }
.notes p { margin: .15rem 0; }
/* Beside the report's navigation there is less room than in a window. */
@media (max-width: 64rem) { table { font-size: 13px; } th, td { padding: .2rem .35rem; } }
/* On a small screen the names of rows leave room for a value and its group's heading. */
:root { --named: 12rem; }
@media (max-width: 40rem) { :root { --named: 7.5rem; } body { margin: .8rem; }
  tbody th[scope=row], thead tr:first-child th:first-child { white-space: normal;
    min-width: 6rem; max-width: 6.5rem; } th, td { padding: .2rem .45rem; } }
</style>
</head>
<body>
<figure>
<figcaption><b>{{ table.title }}.</b> {{ table.caption }}</figcaption>
{% if deviations -%}
<input type="checkbox" id="deviations">
<label class="tools" for="deviations">± s.d. over {{ over }}</label>
{% endif -%}
{% if further -%}
<input type="checkbox" id="further">
<label class="tools" for="further">further columns</label>
{% endif -%}
<a class="tools" download="{{ table.name }}.csv" href="{{ data }}">{{ table.name }}.csv</a>
<div class="scroll">
{{ grid(table.narrow, narrow_head, "narrow") }}
{% if further %}{{ grid(table, head, "full") }}
{% endif -%}
</div>
<div class="notes">
{% for note in table.legend -%}
<p>{{ note }}</p>
{% endfor -%}
</div>
</figure>
</body>
</html>
"""


def render_html(table: Table) -> str:
    """The page; Jinja escapes every label. A link in it saves the CSV."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    over = table.frame["sd_over"][0] if "sd_over" in table.frame.columns else "splits"
    return (
        environment.from_string(HTML_PAGE).render(
            table=table,
            head=_head(table),
            narrow_head=_head(table.narrow),
            further=len(table.narrow.columns) < len(table.columns),
            deviations=any(cell.sd for row in table.rows for cell in row),
            over=over,
            data=f"data:text/csv;charset=utf-8,{quote(render_csv(table))}",
        )
        + "\n"
    )


def _head(table: Table) -> list[list[dict]]:
    """The header lines: one, or two where columns are grouped."""
    columns = table.columns
    if not any(column.group for column in columns):
        return [[_heading(column.heading, column.align) for column in columns]]
    spans = header_spans(columns)
    starts = accumulate((width for _, width in spans), initial=0)
    above = [
        _heading(group, "center", across=width, spans=True)
        if group
        else _heading(columns[start].heading, columns[start].align, down=2)
        for (group, width), start in zip(spans, starts, strict=False)
    ]
    return [above, [_heading(c.heading, c.align) for c in columns if c.group]]


def _heading(text: str, align: str, across: int = 1, down: int = 1, spans: bool = False) -> dict:
    return {"text": text, "align": align, "across": across, "down": down, "spans": spans}


# A table into its three files.


def write_table(table: Table, tex: str | Path, csv_file: str | Path, page: str | Path) -> None:
    """Write LaTeX, CSV and HTML, each whole or not at all."""
    write_text(render_latex(table), tex)
    write_checked(render_csv(table), csv_file)
    write_text(render_html(table), page)
