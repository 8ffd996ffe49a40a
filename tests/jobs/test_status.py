"""The state of a run, from what jobs left behind."""

import os
import time

import pytest

from tracecal.jobs.spent import Spent
from tracecal.jobs.status import Job, estimate, overview, state

NOW = 1_800_000_000.0
BEFORE, AFTER = NOW - 7200, NOW - 60  # before and after a run that began an hour ago
STARTED = NOW - 3600


@pytest.fixture
def made(tmp_path):
    """Makes a job that has left behind what the arguments say."""

    def make(rule="generate", name="a/one", done=False, log=None, at=AFTER, output=None, took=None):
        folder = tmp_path / rule / name.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        if took:
            log = f"10:00:00 {rule}/{name}: {Spent(took, 1, 1)}\n"
        files = {"log": log, "output": "x" if done or output else None}
        for file, text in files.items():
            if text is not None:
                (folder / file).write_text(text)
                os.utime(folder / file, (at, at))
        model = name.split("/")[0] or None
        return Job(rule, name, model, done, (folder / "output",), folder / "log")

    return make


FAILED = "10:00:00 generate/a/one: 10%\n10:00:01 generate/a/one: error: the disk is full (x)\n"


@pytest.mark.parametrize(
    ("left", "goes_on", "idle"),
    [
        ({"done": True, "log": "x"}, "done", "done"),
        ({}, "remaining", "remaining"),
        ({"log": "10:00:00 generate/a/one: 10%"}, "running", "failed"),
        ({"log": ""}, "running", "failed"),
        ({"log": FAILED}, "failed", "failed"),
        ({"log": "10:00:00 x: unexpected error\nTraceback: ...\n"}, "failed", "failed"),
        # Of a run before: this one will come to it.
        ({"log": FAILED, "at": BEFORE}, "remaining", "failed"),
        # Out of date, and not begun: its outputs are those of a run before.
        ({"log": "x", "output": True}, "remaining", "remaining"),
    ],
)
def test_a_job_is_what_it_left_behind(made, left, goes_on, idle):
    assert state(made(**left), STARTED) == goes_on
    assert state(made(**left), None) == idle


def test_what_is_left_is_counted_by_medians_of_the_same_rule_and_model(made):
    jobs = [
        *(made(name=f"a/{n}", done=True, took=took) for n, took in enumerate((10, 20, 90))),
        made(name="b/one", done=True, took=7),
        made(name="a/four"),  # 20, the median of a's
        made(name="b/two", log=""),  # running: half of b's 7
        made(name="c/one"),  # no job of c has finished: 15, the median of 10, 20, 90 and 7
        made(rule="measure"),  # none has finished
    ]
    work, unknown = estimate({job: state(job, STARTED) for job in jobs})
    assert work == pytest.approx(20 + 3.5 + 15)
    assert unknown == 1


def test_a_log_that_is_cut_short_is_left_out(made):
    broken = made(name="a/one", done=True, log="10:00:00 generate/a/one: took 5.00 s, 1.0")
    assert estimate({broken: "done", made(name="a/two"): "remaining"}) == (0, 1)


def test_the_overview_tells_all(made):
    jobs = [
        made(name="a/zero", done=True, took=600),
        made(name="a/one", log="10:00:00 generate/a/one: decoding: 45%\n"),
        made(name="a/two", log=FAILED),
        made(name="a/three"),
    ]
    text = overview(jobs, STARTED, 2, NOW)
    assert text.startswith("1 done, 1 running, 1 failed, 1 remaining; 4 jobs in all\n")
    assert "generate          1          1          1          1\n" in text
    assert (
        "running  generate a/one (last heard 0:01:00 ago)\n         10:00:00 generate/a/one: decoding: 45%"
        in text
    )
    assert "failed   generate a/two" in text
    assert "         error: the disk is full (x)\n" in text
    # 300 s of the running job, 600 s of each other, two side by side.
    expected = time.strftime("%Y-%m-%d %H:%M", time.localtime(NOW + 750))
    assert text.endswith(
        f"about 0:12:30 with 2 job(s) side by side, so the end is expected at {expected}."
    )
    assert overview(jobs, None, 2, NOW).endswith("No run is active.")
    assert overview(jobs[:1], None, None, NOW).endswith("1 jobs in all\n\nFinished.")


def test_an_interrupted_job_says_so(made):
    assert "it was interrupted" in overview([made(log="half\n")], None, None, NOW)
