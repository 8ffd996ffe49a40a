"""`make pictures`: every picture that a reader is shown comes from a run."""

import struct

import pytest

import pictures
from explore.chromium import installed
from explore.synthetic import ESTIMATORS, MODELS, TASKS, answers
from test_report import FIGURES
from tracecal.errors import InputError
from tracecal.explore.contents import contents
from tracecal.explore.page import page


def test_every_picture_that_is_shown_is_kept_and_made_from_a_run():
    names = pictures.shown()
    assert names == {path.name for path in pictures.FOLDER.iterdir()}
    assert names <= {*pictures.PAGES, *(f"{figure}.svg" for figure in FIGURES)}


def test_a_page_is_pictured_with_its_answers(tmp_path):
    if installed() is None:
        pytest.skip("no Chromium here (Debian's package is called chromium)")
    sizes = {}
    for n in (1, 40):
        data = contents(answers(n), ESTIMATORS, MODELS, TASKS, "trial", 4 * n)
        (tmp_path / "explorer.html").write_text(page(data), encoding="utf-8")
        picture = pictures.make(tmp_path, "explorer.png")
        assert picture.startswith(b"\x89PNG")
        assert struct.unpack(">II", picture[16:24]) == (1280, 720)
        sizes[n] = len(picture)
    assert sizes[40] > 1.2 * sizes[1]


def test_a_figure_is_taken_as_the_run_drew_it(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/framework.svg").write_bytes(b"<svg/>")
    assert pictures.make(tmp_path, "framework.svg") == b"<svg/>"
    with pytest.raises(InputError, match="make demo"):
        pictures.make(tmp_path, "explorer.png")
