"""A table as one self-contained HTML page, for reading and for the report."""

from itertools import accumulate
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined

from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.table import Table, header_spans

PAGE = """\
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
{%- if cell.mark %}<sup>{{ cell.mark }}</sup>{% endif %}</td>
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
td.absent, .tools { color: var(--faint); }
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
    """The page, every label escaped, with a link that saves the CSV."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    return (
        environment.from_string(PAGE).render(
            table=table,
            head=_header(table),
            narrow_head=_header(table.narrow),
            further=len(table.narrow.columns) < len(table.columns),
            data=f"data:text/csv;charset=utf-8,{quote(render_csv(table))}",
        )
        + "\n"
    )


def _header(table: Table) -> list[list[dict[str, Any]]]:
    """The header's lines: one, or two where columns are grouped."""
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
    return [above, [_heading(column.heading, column.align) for column in columns if column.group]]


def _heading(
    text: str, align: str, across: int = 1, down: int = 1, spans: bool = False
) -> dict[str, Any]:
    return {"text": text, "align": align, "across": across, "down": down, "spans": spans}
