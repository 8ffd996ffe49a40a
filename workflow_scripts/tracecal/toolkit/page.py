"""The report of `tracecal calibrate` as one self-contained HTML page."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from jinja2 import Environment, StrictUndefined

from tracecal.toolkit.report import advice, guaranteed

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Calibrator of {{ fitted_on.model }} for {{ fitted_on.task }}</title>
<style>
:root { color-scheme: light dark; }
body { margin: 1.5rem auto; max-width: 62rem; padding: 0 1rem;
  font: 15px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 1px solid; }
.scroll { overflow-x: auto; }
small { opacity: .7; }
</style>
</head>
<body>
<h1>Calibrator of {{ fitted_on.model }} for {{ fitted_on.task }}</h1>
<p>{{ fitted_on.n }} labelled answers, {{ "%.1f" | format(100 * fitted_on.base_rate) }} % correct;
entropies: {{ fitted_on.entropy }}.</p>
<p><strong>{{ advice }}</strong></p>
<h2>Guarantees of {{ estimator }}</h2>
<p>Among the answers kept, each error rate holds with confidence {{ confidence }} for new questions
like those labelled.</p>
<ul>
{% for line in guaranteed -%}
<li>{{ line }}</li>
{% endfor -%}
</ul>
{% if outlook %}<p>{{ outlook }}</p>
{% endif -%}
<h2>Estimators</h2>
<p>Each probability is from a fit that did not see the answer or its group. In brackets:
{{ "%g" | format(100 * level) }} % intervals from resampled questions.</p>
<div class="scroll">
<table>
<thead><tr><th>estimator</th><th>answers</th><th>Brier ↓</th><th>AUROC ↑</th>
<th>mean − share correct</th><th>ECE ↓</th><th>different values</th></tr></thead>
<tbody>
{% for row in rows -%}
<tr><td>{{ row.estimator }}</td><td>{{ row.n }}</td>
{%- for metric in ("brier", "auroc", "gap", "ece") %}
<td>{% if row[metric] is none %}–{% else %}{{ "%.3f" | format(row[metric]) }}
{%- if row[metric + "_low"] is not none %} <small>[{{ "%.3f" | format(row[metric + "_low"]) }},
{{ "%.3f" | format(row[metric + "_high"]) }}]</small>{% endif %}{% endif %}</td>
{%- endfor %}
<td>{{ row.distinct }}</td></tr>
{% endfor -%}
</tbody>
</table>
</div>
<p><small>The expected calibration error (ECE) of few answers is biased upwards; the mean
probability minus the share correct is not.</small></p>
</body>
</html>
"""


def render(
    stored: Mapping[str, Any],
    measured: pl.DataFrame,
    certified: pl.DataFrame,
    estimator: str,
    level: float,
    outlook: str | None = None,
) -> str:
    """The page, of what `report.quality` measured and `report.guarantees` certified; `outlook` says
    what a promise would need.
    """
    return (
        Environment(autoescape=True, undefined=StrictUndefined)
        .from_string(PAGE)
        .render(
            fitted_on=stored["fitted_on"],
            estimator=estimator,
            confidence=stored[estimator]["risk_control"]["confidence"],
            advice=advice(stored["fitted_on"], estimator),
            guaranteed=[guaranteed(row).strip() for row in certified.iter_rows(named=True)],
            rows=list(measured.iter_rows(named=True)),
            level=level,
            outlook=outlook,
        )
    )
