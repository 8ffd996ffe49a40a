"""The explorer's file: whole, closed to the outside, and the same each time."""

import gzip
import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html import unescape

import polars as pl
import pytest

from support.explorer_answers import ESTIMATORS, MODELS, TASKS, answers
from trace_workflow.figures import figure_style
from tracecal.explorer import explorer_page as page
from tracecal.explorer.explorer_contents import contents, darkest

ANSWERS = answers(6)
DATA = contents(ANSWERS, ESTIMATORS, MODELS, TASKS, "trial", 99)


def unpacked(text):
    packed = re.search(r'<script id="data"[^>]*>([^<]*)</script>', text).group(1)
    return json.loads(gzip.decompress(b64decode(packed)))


def test_the_page_holds_the_data_and_the_same_data_give_the_same_bytes():
    text = page.page(DATA)
    assert unpacked(text) == DATA
    assert page.page(json.loads(json.dumps(DATA))) == text


def test_columns_hold_what_the_answers_do():
    columns = DATA["answers"]
    for at, row in enumerate(ANSWERS.to_dicts()):
        assert DATA["named"]["model"][columns["model"][at]]["id"] == row["model"]
        assert DATA["named"]["task"][columns["task"][at]]["label"] == TASKS[row["task"]]
        assert columns["entropy"][at] == pytest.approx(row["entropy"], abs=1e-4)
        for one in ESTIMATORS:
            written, exact = columns["score"][one["id"]][at], row[f"score.{one['id']}"]
            assert written == (None if exact is None else pytest.approx(exact, rel=1e-3))
            assert written is None or float(f"{written:.4g}") == written


def test_the_policy_allows_this_style_and_program_and_nothing_else():
    text = page.page(DATA)
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1))
    allowed = dict(rule.split(" ", 1) for rule in policy.split("; "))
    inline = {
        "style-src": re.search(r"<style>(.*?)</style>", text, re.S).group(1),
        "script-src": re.search(r"<script>(.*?)</script>", text, re.S).group(1),
    }
    for kind, source in inline.items():
        digest = b64encode(sha256(source.encode()).digest()).decode()
        assert allowed.pop(kind) == f"'sha256-{digest}'"
    assert set(allowed.values()) == {"'none'"}
    assert {"default-src", "base-uri", "form-action"} == set(allowed)


def test_nothing_on_the_page_names_another_place():
    text = page.page(DATA)
    assert not re.search(
        r"https?:|//\w+\.\w|@import|\burl\(|\bimport\b", text.split("<script id=")[0]
    )
    assert not re.search(r"https?:|innerHTML|insertAdjacentHTML|\beval\b", text)


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!--<script>", "\u2028]]>"]
)
def test_no_text_breaks_out_of_the_data(text):
    hostile = ANSWERS.with_columns(question=pl.lit(text), prediction=pl.lit(text))
    written = page.page(contents(hostile, ESTIMATORS, MODELS, TASKS, "trial", 99))
    assert text not in written
    assert unpacked(written)["answers"]["question"][0] == text


def test_estimators_have_the_colours_of_the_figures():
    css = page.STYLE.read_text(encoding="utf-8")
    looks = dict(figure_style.FAMILIES) | {
        "trace": figure_style.TRACE,
        "trace_plus": figure_style.TRACE_PLUS,
    }
    for name, look in looks.items():
        assert f'[data-look="{name}"] {{ --look: {look.color}; }}' in css
    assert f"[data-look] {{ --look: {figure_style.OTHER.color}; }}" in css


def test_shades_reach_from_nothing_to_nearly_all_tokens():
    nats = pl.Series([[0.0, 1.0], [2.0]] + [[1.0]] * 997, dtype=pl.List(pl.Float32))
    assert darkest(nats) == 1.0
    assert darkest(pl.Series([[4.0] * 3], dtype=pl.List(pl.Float32))) == 4.0
    assert darkest(pl.Series([[0.0]], dtype=pl.List(pl.Float32))) == 1.0
