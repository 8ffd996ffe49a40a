"""The dashboard of examples/ shows the metrics that the proxy exports."""

import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tracecal.serving.proxy_metrics import Metrics
from tracecal.serving.proxy_settings import ProxySettings
from tracecal.serving.watcher import Watcher

FILE = Path(__file__).resolve().parents[3] / "examples/grafana_dashboard.json"
DASHBOARD = json.loads(FILE.read_text(encoding="utf-8"))
PANELS = DASHBOARD["panels"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
NAME = re.compile(r"\btracecal_\w+")


@pytest.fixture(scope="module")
def exported(of_top_k, tmp_path_factory):
    """The metrics' labels, by the names of their samples, after a request."""
    state = str(tmp_path_factory.mktemp("state") / "s.db")
    watcher = Watcher(of_top_k, 0.5, ProxySettings(upstream="http://x", watch=state))
    metrics = Metrics(watcher)
    metrics.requests.labels(200).inc()
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    samples = [sample for family in families for sample in family.samples]
    return {sample.name: {*sample.labels} for sample in samples}


def test_every_metric_of_the_dashboard_is_exported_with_its_labels(exported):
    assert {name for query in QUERIES for name in NAME.findall(query)} <= exported.keys()
    for panel in PANELS:
        for target in panel["targets"]:
            (name,) = NAME.findall(target["expr"])
            grouped = re.findall(r" by \((\w+)\)", target["expr"])
            shown = re.findall(r"{{(\w+)}}", target["legendFormat"])
            assert {*grouped, *shown} <= exported[name]
    job = DASHBOARD["templating"]["list"][1]["query"]["query"]
    assert NAME.findall(job)[0] in exported


def test_every_exported_metric_is_on_the_dashboard(exported):
    shown = {name for query in QUERIES for name in NAME.findall(query)}
    kinds = ("_created", "_sum", "_count")
    assert {name for name in exported if not name.endswith(kinds)} == shown


def test_panels_have_numbers_of_their_own_and_do_not_overlap():
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    cells = [
        {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        for at in (panel["gridPos"] for panel in PANELS)
    ]
    assert all(first.isdisjoint(second) for first, second in combinations(cells, 2))
    assert all(x < 24 for panel_cells in cells for x, _ in panel_cells)
