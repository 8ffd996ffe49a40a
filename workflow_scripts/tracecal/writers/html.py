"""A table as one self-contained HTML page, for reports and for reading."""

from itertools import accumulate

from jinja2 import Environment, StrictUndefined

from tracecal.writers.table import Table, header_spans

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ table.title }}</title>
<style>
:root { color-scheme: light; }
body { margin: 1.5rem; background: #fff; color: #1c1f23;
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
figure { margin: 0; display: table; max-width: 100%; }
.scroll { overflow-x: auto; }
figcaption, .notes { max-width: 62rem; }
figcaption { margin-bottom: .8rem; color: #3c4249; }
figcaption b { color: #1c1f23; }
table { border-collapse: collapse; border-top: 2px solid #1c1f23; border-bottom: 2px solid #1c1f23;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .2rem .7rem; font-weight: normal; }
.left { text-align: left; } .center { text-align: center; } .right { text-align: right; }
thead th { vertical-align: bottom; }
thead tr:last-child th, thead th[rowspan] { border-bottom: 1px solid #1c1f23;
  padding-bottom: .35rem; }
thead th.span { padding-top: .4rem; }
thead th.span span { display: block; border-bottom: 1px solid #9aa1a9; padding-bottom: .15rem; }
tbody + tbody { border-top: 1px solid #9aa1a9; }
tbody th.title { text-align: left; font-style: italic; color: #59616a; padding-top: .45rem; }
tbody tr:hover td, tbody tr:hover th.left { background: #f2f5f8; }
sup { line-height: 0; }
td.absent { color: #767d85; }
.notes { margin-top: .7rem; color: #59616a; font-size: 13px; }
.notes p { margin: .15rem 0; }
</style>
</head>
<body>
<figure>
<figcaption><b>{{ table.title }}.</b> {{ table.caption }}</figcaption>
<div class="scroll">
<table>
<thead>
{% for line in head -%}
<tr>
{%- for c in line -%}
<th class="{{ c.align }}{{ ' span' if c.across > 1 or c.spans }}"
{%- if c.across > 1 %} colspan="{{ c.across }}"{% endif %}
{%- if c.down > 1 %} rowspan="{{ c.down }}"{% endif %}
{{- '' }} scope="{{ 'colgroup' if c.spans else 'col' }}">
{%- if c.spans %}<span>{{ c.text }}</span>{% else %}{{ c.text }}{% endif %}</th>
{%- endfor -%}
</tr>
{% endfor -%}
</thead>
{% for group in table.groups -%}
<tbody>
{% if group.title -%}
<tr><th class="title" scope="rowgroup" colspan="{{ table.columns | length }}">
{{- group.title }}</th></tr>
{% endif -%}
{% for row in group.rows -%}
<tr>
{%- for cell in row -%}
{% set align = table.columns[loop.index0].align -%}
{% if loop.first -%}
<th class="{{ align }}" scope="row">{{ cell.text }}{{ cell.mark }}</th>
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


def render(table: Table) -> str:
    """The page; Jinja escapes every label."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    return environment.from_string(PAGE).render(table=table, head=_head(table)) + "\n"


def _head(table: Table) -> list[list[dict]]:
    """The header lines: one, or two where columns stand in groups."""
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
