"""How many labels a guarantee needs, as a table, a picture and a sentence."""

import math
from collections.abc import Mapping
from typing import Any

import polars as pl
from jinja2 import Environment, StrictUndefined

from tracecal.calibration.forecast import POWER, describe_forecast, format_count, questions_needed
from tracecal.calibration.populations import Population

TOPS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # shares kept at which an axis may end

PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 290"
  font-family="sans-serif" font-size="12">
<title>{{ title }}</title>
<style>
.ground { fill: #fff; } text { fill: #1c1f23; } .grid { stroke: #dfe3e7; }
.line { fill: none; stroke: #2F5D8A; stroke-width: 2; } .dot, .band { fill: #2F5D8A; }
.band { fill-opacity: .2; } .enough { stroke: #9A5B00; stroke-dasharray: 5 4; }
text.told { fill: #9A5B00; font-weight: bold; }
@media (prefers-color-scheme: dark) {
.ground { fill: #15181b; } text { fill: #e8ebee; } .grid { stroke: #343b42; }
.line { stroke: #8fbde6; } .dot, .band { fill: #8fbde6; }
.enough { stroke: #f5b95c; } text.told { fill: #f5b95c; } }
</style>
<rect class="ground" width="480" height="290"/>
<text x="14" y="20" font-weight="bold">{{ title }}</text>
{% for place in (0, 0.25, 0.5, 0.75, 1) -%}
<line class="grid" x1="50" x2="465" y1="{{ up(place * top) }}" y2="{{ up(place * top) }}"/>
<text x="44" y="{{ up(place * top) + 4 }}" text-anchor="end">
{{- "%g" | format(100 * place * top) }} %</text>
{% endfor -%}
<polygon class="band" points="{{ band }}"/>
<polyline class="line" points="{{ line }}"/>
{% for row in rows -%}
<circle class="dot" cx="{{ across(row.questions) }}" cy="{{ up(row.median) }}" r="3"/>
<text x="{{ across(row.questions) }}" y="250" text-anchor="middle">
{{- "{:,}".format(row.questions) }}</text>
{% endfor -%}
{% if enough -%}
<line class="enough" x1="{{ across(enough) }}" x2="{{ across(enough) }}" y1="42" y2="{{ up(0) }}"/>
{% endif -%}
<text class="told" x="{{ at }}" y="38" text-anchor="{{ anchor }}">{{ told }}</text>
<text x="257" y="267" text-anchor="middle">labelled questions</text>
<text x="257" y="284" text-anchor="middle">line: median of the draws; band: 80 % of them</text>
</svg>
"""


def format_plan(
    population: Population, table: pl.DataFrame, error_rate: float, confidence: float
) -> str:
    """The table and what is needed, for a terminal."""
    lines = [
        f"At most {error_rate:.0%} incorrect, with confidence {confidence:g}:",
        f"{'labelled questions':>18}{'guaranteed in':>15}{'share kept, median':>20}"
        f"{'80 % of draws':>16}",
    ]
    lines += [
        f"{row['questions']:>18,}{row['guaranteed']:>15.0%}{row['median']:>20.0%}{_ends(row):>16}"
        for row in table.iter_rows(named=True)
    ]
    return "\n".join([*lines, "", describe_forecast(population, table, error_rate)])


def _ends(row: Mapping[str, Any]) -> str:
    return f"{row['low']:.0%} to {row['high']:.0%}"


def draw_plan(table: pl.DataFrame, error_rate: float, confidence: float) -> str:
    """The share kept by number of labelled questions, as SVG: median and 80 % of draws; and
    the number that suffices.
    """
    rows, enough = table.to_dicts(), questions_needed(POWER, table)
    least, most = math.log(rows[0]["questions"]), math.log(rows[-1]["questions"])
    top = next(one for one in TOPS if one >= table["high"].max())

    def across(questions: float) -> float:
        return round(65 + 380 * (math.log(questions) - least) / max(most - least, 1e-9), 1)

    def up(share: float) -> float:
        return round(232 - 184 * share / top, 1)

    def points(column: str) -> list[str]:
        return [f"{across(row['questions'])},{up(row[column])}" for row in rows]

    title = f"Answers kept with at most {error_rate:.0%} incorrect ({confidence:.0%} confidence)"
    told, at = f"not even {rows[-1]['questions']:,} suffice in {POWER:.0%} of the draws", 257.0
    if enough is not None:
        told, at = f"{format_count(enough)} suffice in {POWER:.0%} of the draws", across(enough)
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(PICTURE).render(
        title=title,
        told=told,
        at=at,
        anchor="start" if at < 170 else "end" if at > 350 else "middle",
        enough=enough,
        rows=rows,
        top=top,
        across=across,
        up=up,
        line=" ".join(points("median")),
        band=" ".join([*points("high"), *reversed(points("low"))]),
    )
