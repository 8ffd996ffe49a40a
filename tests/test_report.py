"""The report's table of contents and the captions that several tables share."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from docutils.core import publish_parts
from jinja2 import Environment

from trace_workflow.config.run import load_run
from trace_workflow.contents.contents import plan
from trace_workflow.tables.wording import fill_caption
from tracecal.io.input_files import read_yaml

REPORT = Path(__file__).resolve().parents[1] / "report"
CONTENTS = yaml.safe_load((REPORT / "contents.yaml").read_text(encoding="utf-8"))
PLAN = plan(load_run(read_yaml(REPORT.parent / "config/config.yaml"), "config", REPORT.parent))
WORDS = {name: words for shown in CONTENTS.values() for name, words in shown.items()}


def caption(words):
    """A caption as the report shows it: the template's text, before it is made HTML."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((REPORT / "caption.rst").read_text(encoding="utf-8"))
    return template.render(snakemake=SimpleNamespace(params=SimpleNamespace(words=words)))


def test_every_table_and_figure_is_listed_once():
    listed = Counter(name for shown in CONTENTS.values() for name in shown)
    assert listed == Counter([*PLAN.tables, *PLAN.figures, "costs", "explorer"])


def test_titles_tell_the_results_of_a_page_apart():
    for shown in CONTENTS.values():
        titles = [words["title"] for words in shown.values()]
        assert len(set(titles)) == len(titles)


def test_every_result_has_a_title_and_a_caption_of_its_own():
    for part in ("title", "caption"):
        assert len({words[part] for words in WORDS.values()}) == len(WORDS)
    assert min(len(words["caption"]) for words in WORDS.values()) > 100
    assert all(words["caption"].strip().endswith(".") for words in WORDS.values())


def test_captions_are_filled_with_the_runs_facts():
    words = {"title": "T", "caption": "{model} on {tasks}: {mean}.\n"}
    facts = {"model": "M_1", "tasks": "A and B", "mean": "the mean", "other": 1}
    assert fill_caption(words, facts) == {"title": "T", "caption": "M_1 on A and B: the mean."}
    with pytest.raises(KeyError):
        fill_caption({"title": "T", "caption": "{unknown}"}, facts)


def test_the_report_shows_a_caption_letter_by_letter():
    text = r"Model_ on *all* `tasks` |x| with \alpha"
    escaped = caption({"title": "T", "caption": text})
    assert publish_parts(escaped, writer="pseudoxml")["whole"].split() == [
        *("<document", 'source="<string>">', "<paragraph>"),
        *text.split(),
    ]
