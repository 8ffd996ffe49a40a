"""`make pictures`: every picture that a reader is shown comes from a run."""

import struct

import polars as pl
import pytest

from maintenance import pair, pictures
from maintenance.pictures import (
    PAGES,
    RUNS,
    picture,
    pictures_shown,
    with_first_finding,
)
from support.chromium import installed
from support.explorer_answers import ESTIMATORS, MODELS, TASKS, answers
from test_report import PLAN
from tracecal.errors import InputError
from tracecal.explorer.explorer_contents import contents
from tracecal.explorer.explorer_page import page


@pytest.mark.parametrize("run", [name for name, one in RUNS.items() if one.folder])
def test_every_picture_that_is_shown_is_kept_and_made_from_a_run(run):
    folder = pictures.ROOT / RUNS[run].folder
    names = pictures_shown(pictures.ROOT, folder.name)
    assert names == {path.name for path in folder.iterdir()}
    assert names <= {*PAGES, "pair.svg", *(f"{figure}.svg" for figure in PLAN.figures)}


def test_only_runs_that_a_page_tells_of_are_taken(tmp_path):
    with pytest.raises(InputError, match="describe the runs demo and evening only"):
        pictures.main(tmp_path / "mine")


def test_the_pair_is_the_most_trusted_right_and_the_least_trusted_wrong_short_answer():
    rows = [
        ("a", [0.1, 0.0], True, 0.9),
        ("b", [0.2, 0.0], True, 0.95),
        ("c", [2.7, 0.0], False, 0.1),
        ("long", [3.0] * 9, False, 0.01),
        ("none", [3.0, 0.0], False, None),
    ]
    answers = pl.DataFrame(
        {
            "example_id": name,
            "question": f"In which country is {name}?",
            "tokens": [" Peru"] + [""] * (len(surprisal) - 1),
            "surprisal": surprisal,
            "correct": correct,
            "probability": probability,
        }
        for name, surprisal, correct, probability in rows
    )
    right, wrong = pair.choose(answers)
    assert (right["example_id"], wrong["example_id"]) == ("b", "c")
    texts = [text.get_text() for axes in pair.draw(right, wrong).axes for text in axes.texts]
    assert {"Peru", "2.7", "✓ right, 0.95", "✗ wrong, 0.10"} <= {*texts}
    with pytest.raises(InputError, match="none is wrong"):
        pair.choose(answers.filter("correct"))


@pytest.mark.pages
def test_a_page_is_pictured_with_its_answers(tmp_path):
    installed()
    pages = []
    for n in (1, 40):
        data = contents(answers(n), ESTIMATORS, MODELS, TASKS, "trial", 4 * n)
        (tmp_path / "explorer.html").write_text(page(data), encoding="utf-8")
        pages.append(picture(tmp_path, "explorer.png"))
        assert pages[-1].startswith(b"\x89PNG")
        assert struct.unpack(">II", pages[-1][16:24]) == (1280, 720)
    # Before its answers are unpacked the page is always the same.
    assert pages[0] != pages[1]


def test_the_explorer_lists_the_headline_s_task_first():
    labels = PLAN.run.explored_tasks
    headline = PLAN.run.config.study.headline.task
    assert next(iter(labels)) == headline != next(iter(PLAN.run.task_labels))
    assert labels == PLAN.run.task_labels


def test_a_figure_is_taken_as_the_run_drew_it(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/framework.svg").write_bytes(b"<svg/>")
    assert picture(tmp_path, "framework.svg") == b"<svg/>"
    with pytest.raises(InputError, match="make demo"):
        picture(tmp_path, "explorer.png")


def test_the_first_finding_replaces_what_stands_in_its_place():
    readme = (pictures.ROOT / "README.md").read_text(encoding="utf-8")
    page = with_first_finding(readme, "Keep all.\nTwo.\n")
    assert "-->\n**Keep all.**\n<!-- end" in page and "Two." not in page
    assert page.split("<!--")[0] == readme.split("<!--")[0]
    assert page.split("-->")[-1] == readme.split("-->")[-1]
    assert with_first_finding(page, "None.\n").count("**None.**") == 1


def test_each_page_has_a_place_for_what_it_tells():
    for name, run in RUNS.items():
        *texts, results = [(pictures.ROOT / page).read_text(encoding="utf-8") for page in run.pages]
        assert all("<!-- first finding" in text for text in texts)
        assert f"<!-- comparison of {name}:" in results


def test_the_main_comparison_is_told_in_a_table():
    averages = pl.DataFrame(
        [
            {"study": study, "task": task, "estimator": one, "metric": metric, "mean": value}
            for study, task, value in (("main", None, 0.7), ("main", "sums", 0.1))
            for one in pictures.SCORES
            for metric in pictures.METRICS
        ]
    )
    row = {"study": "main", "task": None, "estimator": "trace_plus"}
    row |= {"reference": 0.6, "difference": -0.0123}
    bounds = {"picked": (-0.05, 0.025), "named": (-0.05, 0.025), "oracle": (None, None)}
    improvements = pl.DataFrame(
        [
            row | {"metric": metric, "against": against, "low": low, "high": high}
            for metric in pictures.METRICS
            for against, (low, high) in bounds.items()
        ]
    )
    head, rule, first, *others = pictures.comparison(averages, improvements).split("\n")
    assert head.count("|") == rule.count("|") == first.count("|") == 7
    assert first.startswith("| AUROC | 0.700 | 0.700 | 0.600: −0.012 (−0.050 to +0.025) |")
    assert first.endswith("| 0.600: −0.012 |")
    assert len(others) == 2
