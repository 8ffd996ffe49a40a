"""The page of the monitors' evidence: `tracecal watch --report`, and `Monitors.report`."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from support.labelled_answers import answers
from tracecal.cli.main import main
from tracecal.serving.monitoring.batch import Batch
from tracecal.serving.monitoring.database import StateDatabase
from tracecal.serving.monitoring.report import MAX_POINTS, page
from tracecal.serving.monitoring.state import AlarmSettings
from tracecal.serving.monitoring.traffic import calibrator_identity

HOSTILE = '"><b onclick=alert(1)>\u202e&{{ 7 * 7 }}'


@pytest.fixture
def database_of(calibrator, tmp_path):
    def make(**settings):
        identity = calibrator_identity(calibrator, settings.get("error_rate"))
        return StateDatabase(tmp_path / "s.db", identity, AlarmSettings(**settings))

    return make


def batch(n, probability=0.5, length=3.0, kept=1.0):
    return Batch(*(np.full(n, value) for value in (probability, length, kept)))


def add(database, n, **values):
    n_before = database.state.n_answers
    ids = [str(place) for place in range(n_before, n_before + n)]
    database.add_answers(ids, batch(n, **values))


def test_it_says_what_evidence_is_and_draws_that_of_each_monitor(database_of, calibrator):
    database = database_of(answers_per_alarm=1000, error_rate=0.5)
    for _ in range(5):
        add(database, 20)
    html = page(database, calibrator)
    assert html.count("<svg") == html.count("<polyline") == 5
    assert html.count('class="limit"') == 5
    html = " ".join(html.split())
    assert html.count("an alarm is raised at the dashed line") == 1
    assert "at most once in 1,000 answers on average, and evidence from labels ever with" in html
    assert html.count(": no alarm</b>") == 5
    assert "Evidence 1.0 of 20." in html
    assert ">answer 20</text>" in html and ">100</text>" in html
    assert "100 of 100 answers watched, one of each request" in html
    assert "No alarm." in html
    for word in ("WARNING", "ALARM", "No answer has a decision", "nan"):
        assert word not in html


def test_a_single_batch_draws_a_line_from_before_its_answers(database_of, calibrator):
    database = database_of()
    add(database, 60)
    html = page(database, calibrator)
    assert {len(line.split()) for line in re.findall(r'points="([^"]*)"', html)} == {2}
    assert ">answer 0</text>" in html and ">60</text>" in html


def test_an_alarm_is_told_and_drawn_above_its_line(database_of, calibrator):
    database = database_of(answers_per_alarm=1000)
    rng = np.random.default_rng(3)
    for place in range(20):
        length = np.full(20, 3.0 if place < 10 else 300.0)
        ids = [f"{place}n{n}" for n in range(20)]
        database.add_answers(ids, Batch(rng.random(20), length, np.full(20, np.nan)))
    html = page(database, calibrator)
    assert "ALARM: the length changed: noticed at answer" in html
    html = " ".join(html.split())
    assert html.count(": alarm</b>") == 1 and '<b class="false">Length: alarm</b>' in html
    figure = html[html.index('aria-label="Evidence: Length"') :]
    limit = float(re.search(r'class="limit".*? y1="([\d.]+)"', figure)[1])
    points = re.search(r'points="([^"]*)"', figure)[1].split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights[5] > limit > heights[-1]


@pytest.mark.parametrize(
    ("error_rate", "probability", "reason"),
    [
        (0.05, 0.7, "highest-ranked answers are wrong"),
        (0.5, np.nan, "none has a probability"),
        (0.5, 0.7, None),
    ],
)
def test_answers_of_which_none_has_a_decision_are_told_of(
    database_of, calibrator, error_rate, probability, reason
):
    database = database_of(error_rate=error_rate)
    assert "No answer has a decision" not in page(database, calibrator)
    add(database, 60, probability=probability, kept=np.nan)
    sentence = "No answer has a decision, 60 of 60: calibrate on answers like these"
    html = page(database, calibrator)
    assert sentence + (" (" if reason else ".") in html and (reason or "") in html


def test_the_page_of_many_answers_is_as_small_as_that_of_few(database_of, calibrator):
    database = database_of()
    for _ in range(500):
        add(database, 2)
    points = re.findall(r'points="([^"]*)"', page(database, calibrator))
    assert {len(line.split()) for line in points} == {MAX_POINTS}


def test_the_command_writes_it_and_a_name_is_shown_as_text(
    calibrator_file, tmp_path, monkeypatch, browser
):
    monkeypatch.chdir(tmp_path)
    answers(60, seed=3).with_columns(pl.lit("x").alias(HOSTILE)).write_parquet("new.parquet")
    given = ["--answers", "new.parquet", "--calibrator", str(calibrator_file), "--state", "s.db"]
    assert main(["watch", *given, "--one-per", HOSTILE, "--report", "r.html"]) == 0
    html = Path("r.html").read_text(encoding="utf-8")
    assert "<b onclick" not in html
    browser.visit((tmp_path / "r.html").as_uri())
    assert browser.ask("document.querySelectorAll('svg').length") == 4
    assert browser.ask("document.querySelectorAll('script, [onclick]').length") == 0
    assert not browser.complaints


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_a_window(database_of, calibrator, browser, tmp_path, width):
    database = database_of(error_rate=0.5)
    add(database, 100)
    (tmp_path / "r.html").write_text(page(database, calibrator), encoding="utf-8")
    browser.resize(width, 900)
    browser.visit((tmp_path / "r.html").as_uri())
    assert browser.ask("document.documentElement.scrollWidth") <= width
