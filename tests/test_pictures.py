"""`make pictures`: every picture that a reader is shown comes from a run."""

import struct

import pytest

from support.chromium import installed
from support.explorer_answers import ESTIMATORS, MODELS, TASKS, answers
from test_report import PLAN
from trace_workflow.commands import pictures
from trace_workflow.commands.pictures import PAGES, TOLD, picture, shown, with_findings
from tracecal.apps.explorer.contents import contents
from tracecal.apps.explorer.page import page
from tracecal.errors import InputError


@pytest.mark.parametrize("run", TOLD)
def test_every_picture_that_is_shown_is_kept_and_made_from_a_run(run):
    folder = pictures.ROOT / TOLD[run].folder
    names = shown(pictures.ROOT, folder.name)
    assert names == {path.name for path in folder.iterdir()}
    assert names <= {*PAGES, *(f"{figure}.svg" for figure in PLAN.figures)}


def test_only_runs_that_a_page_tells_of_are_taken(tmp_path):
    with pytest.raises(InputError, match="tell of the runs demo and evening only"):
        pictures.main(tmp_path / "mine")


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


def test_a_figure_is_taken_as_the_run_drew_it(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/framework.svg").write_bytes(b"<svg/>")
    assert picture(tmp_path, "framework.svg") == b"<svg/>"
    with pytest.raises(InputError, match="make demo"):
        picture(tmp_path, "explorer.png")


def test_findings_replace_what_stands_in_their_place():
    readme = (pictures.ROOT / "docs/background/demo.md").read_text(encoding="utf-8")
    told = with_findings(readme, "Keep all.\n" + "One " * 40 + "end.\nTwo.\n")
    assert "-->\n**Keep all.**\n<!-- end" in told
    assert "- One One" in told and "\n  One" in told and "\n- Two.\n<!-- end" in told
    again = with_findings(told, "None.\nTwo.\n")
    assert again.count("- Two.") == again.count("**None.**") == 1
    assert told.split("<!--")[0] == readme.split("<!--")[0]
    assert told.split("-->")[-1] == readme.split("-->")[-1]


def test_each_page_has_a_place_for_what_it_tells():
    for told in TOLD.values():
        texts = [(pictures.ROOT / page).read_text(encoding="utf-8") for page in told.pages]
        assert all("<!-- first finding" in text for text in texts)
        assert "\n<!-- findings" in texts[-1]
    short = "<!-- first finding -->\n\n<!-- end of first finding -->\n"
    assert with_findings(short, "Keep all.\nTwo.\n").split("\n")[1] == "**Keep all.**"
