"""A table as a LaTeX float for booktabs, multirow, graphicx and natbib."""

import re
from collections.abc import Iterable, Sequence

from tracecal.errors import InputError
from tracecal.writers.table import Cell, Column, RowGroup, Table, header_spans

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
    "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
    "§": r"$^{\S}$",
    "✓": r"$\surd$",
    "✗": r"$\times$",
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


def escape(text: str) -> str:
    """Plain text as LaTeX that prints it; white space, line ends included, becomes one space."""
    spaced = re.sub("-(?=-)", "-\u200b", " ".join(text.split()))
    return "".join(CHARACTERS.get(character, character) for character in spaced)


def render(table: Table) -> str:
    """The whole float."""
    columns = table.columns
    width = r"\textwidth" if table.wide else r"\columnwidth"
    float_name = "table*" if table.wide else "table"
    notes = [rf"{{\raggedright {escape(note)}\par}}" for note in table.legend]
    lines = [
        "% Generated: edits are lost. Needs booktabs, graphicx, multirow, natbib.",
        rf"\begin{{{float_name}}}[t]",
        r"\centering",
        r"\scriptsize",
        r"\setlength{\tabcolsep}{2.8pt}",
        r"\renewcommand{\arraystretch}{1.04}",
        # Only ever smaller: a narrow table is not blown up to the page's width.
        rf"\resizebox{{\ifdim\width>{width}{width}\else\width\fi}}{{!}}{{%",
        rf"\begin{{tabular}}{{@{{}}{''.join(column.align[0] for column in columns)}@{{}}}}",
        r"\toprule",
        *_header(columns),
        RULE,
        *_body(table),
        r"\bottomrule",
        r"\end{tabular}%",
        "}",
        *([r"\par\vspace{3pt}", *notes] if notes else []),
        rf"\caption{{{escape(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\end{{{float_name}}}",
    ]
    return "\n".join(lines) + "\n"


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


def _body(table: Table) -> list[str]:
    lines: list[str] = []
    for group in table.groups:
        lines += [RULE] if lines else []
        lines += _group(group, table)
    return lines


def _group(group: RowGroup, table: Table) -> list[str]:
    title = (
        rf"\multicolumn{{{len(table.columns)}}}{{@{{}}c@{{}}}}{{\textit{{{escape(group.title)}}}}}"
    )
    rows = [_line(map(_cell, row)) for row in group.rows]
    return [_line([title]), *rows] if group.title else rows


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
