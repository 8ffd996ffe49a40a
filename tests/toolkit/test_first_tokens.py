"""Calibrators that look at an answer's first tokens alone."""

import polars as pl
import pytest

from toolkit.made import answers
from tracecal.errors import InputError
from tracecal.toolkit.answer import score_answer
from tracecal.toolkit.command import main
from tracecal.toolkit.fit import FitSettings, calibrate_answers
from tracecal.toolkit.fitted import from_stored
from tracecal.toolkit.score import score_answers
from tracecal.toolkit.watch.command import promised
from tracecal.toolkit.watch.options import Watching

FIRST = 3
SETTINGS = FitSettings(splits={"count": 2})


def by_hand(frame):
    """The same answers, of which only the first tokens were ever written down."""
    cut = {name: [row[:FIRST] for row in frame[name]] for name in ("surprisal", "entropy")}
    return frame.with_columns(
        pl.Series(name, rows, pl.List(pl.Float32)) for name, rows in cut.items()
    )


@pytest.fixture(scope="module")
def stored():
    return calibrate_answers(answers(), "t", SETTINGS, first=FIRST)


def test_it_is_the_calibrator_of_answers_that_end_there(stored):
    # Cut answers may have equal traces, which makes one question of them: keep all apart.
    apart = by_hand(answers()).with_columns(group_id=pl.col("example_id"))
    same = calibrate_answers(apart, "t", SETTINGS)
    assert stored["fitted_on"]["first"] == FIRST
    assert "first" not in same["fitted_on"]
    for estimator in ("trace_plus", "seq_logp"):
        assert stored[estimator] == same[estimator]


def test_of_a_new_answer_only_the_first_tokens_count(stored):
    fitted, new = from_stored(stored, "trace_plus", "made up"), answers(50, seed=1)
    whole, cut = (score_answers(frame, fitted, 0.5) for frame in (new, by_hand(new)))
    assert whole.equals(cut)
    for row, probability in zip(new.iter_rows(named=True), whole["probability"], strict=True):
        one = score_answer(fitted, row["surprisal"], row["entropy"])
        assert one.probability == pytest.approx(probability, abs=1e-12)


def test_it_is_not_watched_and_wrong_numbers_are_refused(stored, tmp_path, caplog):
    with pytest.raises(InputError, match="the first 3 tokens alone"):
        promised(from_stored(stored, "trace_plus", "made up"), Watching(), None)
    answers(40).write_ndjson(tmp_path / "a.jsonl")
    start = ["calibrate", "--answers", str(tmp_path / "a.jsonl"), "--task", "t", "--output", "x"]
    assert main([*start, "--first", "0"]) == 1
    assert "expected a number of tokens" in caplog.text
