"""Text from configs, data and models is text: it reaches no shell, template, page or typesetter."""

import json

import pytest
import yaml

pytestmark = pytest.mark.workflow

ATTACKS = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    "{{ 7*7 }}",
    "{% raw %}",
    "{wildcards.model}",
    "</script><script>document.title='pwned'</script>",
    "<img src=x onerror=alert(1)>",
    "\\input{/etc/passwd}",
    "\\immediate\\write18{touch pwned}",
    "../../pwned",
    "%PDF & # _ ^ ~ $x$",
    "\u202eright to left\x07",
]


@pytest.fixture(scope="module")
def hostile(finished):
    """A small run whose labels and data are all attacks, on a model of the finished run."""
    rows = [
        {"q": f"{ATTACKS[i % len(ATTACKS)]} What is {i} + 1?", "a": [str(i + 1), ATTACKS[i % 13]]}
        for i in range(60)
    ]
    lines = "\n".join(json.dumps(row) for row in rows)
    (finished.root / "rows $(touch pwned).jsonl").write_text(lines, encoding="utf-8")
    spec = {
        "label": "Task \\input{x} <b>{{ 7*7 }}</b> {wildcards.task}",
        "source": {"path": "rows $(touch pwned).jsonl"},
        "fields": {"question": "q", "references": "a"},
        "correctness": "numeric",
        "max_new_tokens": 8,
    }
    (finished.root / "hostile_task.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    model = {
        "slug": "hostile",
        "label": "Model \\write18{touch pwned} <b onclick=alert(1)> {{ 7*7 }} {threads}",
        "source": {"path": "results/smoke/models/demo-small"},
    }
    config = finished.variant(
        "hostile",
        run="hostile",
        models=[model],
        tasks=[{"slug": "hostile", "file": "hostile_task.yaml"}],
        study={"main": {"model": "hostile", "tasks": ["hostile"]}},
        estimators=["seq_logp", "windowed_entropy", "trace", "trace_plus"],
    )
    process = finished.snakemake(config=config)
    return finished, config, process


def test_nothing_is_executed_anywhere(hostile):
    checkout, _, _ = hostile
    assert not list(checkout.root.rglob("pwned*"))
    assert not (checkout.root.parent / "pwned").exists()


def test_tables_show_the_text_and_run_none_of_it(hostile):
    checkout, _, _ = hostile
    tables = checkout.root / "results/hostile/tables"
    html = (tables / "main_comparison.html").read_text(encoding="utf-8")
    assert "<b onclick" not in html
    assert "&lt;b onclick" in html
    assert "{{ 7*7 }}" in html
    tex = (tables / "main_comparison.tex").read_text(encoding="utf-8")
    assert "\\write18" not in tex
    assert "\\input{" not in tex
    assert "49" not in html.split("7*7")[1][:40]


def test_the_report_shows_the_text_and_runs_none_of_it(hostile, tmp_path):
    checkout, config, _ = hostile
    report = tmp_path / "report.html"
    checkout.snakemake("--report", str(report), config=config)
    text = report.read_text(encoding="utf-8")
    assert "<script>document.title" not in text
    assert "onerror=alert(1)>" not in text
