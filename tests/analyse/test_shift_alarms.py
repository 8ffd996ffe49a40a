"""Traffic that turns from one task to another, on answers made up here."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp

from tracecal.analyse.shift_alarms import (
    AFTER,
    BEFORE,
    SHIFT_ALARMS,
    STEP,
    WINDOW,
    distance,
    from_task,
)
from tracecal.calibrate.splits import make_splits
from tracecal.tables import shift_alarms as table
from tracecal.tables.settings import Settings
from tracecal.watch.monitors import Batch, Promise, Reference, start, watch
from tracecal.watch.streams import first_alarms

INPUTS = ["features.a", "features.log_length"]


def made_up(task, n, shift, seed):
    """Answers, wrong ones likelier where feature a is small; a shift makes it smaller."""
    rng = np.random.default_rng(seed)
    a = rng.normal(-shift, 1, n)
    ids = [f"{task}{place:03}" for place in range(n)]
    return pl.DataFrame(
        {
            "example_id": ids,
            "group_id": ids,
            "correct": rng.random(n) < 1 / (1 + np.exp(-2 * a - 1)),
            "features.a": a,
            "features.log_length": np.log(rng.integers(1, 30, n)),
        }
    )


@pytest.fixture(scope="module")
def found():
    answers = {name: made_up(name, 300, shift, 1) for name, shift in {"t": 0, "u": 2}.items()}
    alone = answers["t"].select("example_id", "group_id")
    splits = make_splits(alone, "t", 1, 1, 0.35)
    rows = from_task(
        "t",
        answers,
        splits,
        inputs=INPUTS,
        method="platt",
        error_rates=[0.3, 0.5],
        confidence=0.9,
        seed=3,
        repetitions=20,
    )
    return pl.DataFrame([{"model": "m"} | row for row in rows], schema=SHIFT_ALARMS)


def test_a_turn_is_noticed_and_no_change_raises_hardly_an_alarm(found):
    monitors = found.filter(method="monitors")
    same, other = monitors.rows(named=True)
    assert (same["turned_to"], other["turned_to"]) == ("t", "u")
    assert same["false_alarms"] <= (BEFORE + AFTER) / (2 * 10_000) + 0.15
    assert same["delay_median"] is same["noticed"] is None
    assert other["noticed"] == 1
    assert 5 <= other["delay_median"] <= other["delay_90"] <= 150
    assert other["first"] == "probability"
    assert other["kept_error"] >= 0


def test_the_window_raises_no_more_false_alarms_than_the_monitors(found):
    same = found.filter(turned_to="t")
    rates = dict(same.select("method", "false_alarms").iter_rows())
    assert rates["window"] <= rates["monitors"]
    other = found.filter(turned_to="u", method="window").row(0, named=True)
    assert other["noticed"] == 1


def test_the_windows_statistic_is_scipys():
    rng = np.random.default_rng(2)
    reference, values = rng.random(150).round(2), rng.random(260).round(2)
    values[[3, 120, 250]] = np.nan
    told = distance(reference, values)
    for end in (WINDOW, WINDOW + STEP, 260):
        last = values[end - WINDOW : end]
        expected = ks_2samp(reference, last[~np.isnan(last)]).statistic
        assert told[end - 1] == pytest.approx(expected)
    assert told[: WINDOW - 1].max() == 0
    assert told[WINDOW] == 0


def test_streams_at_once_raise_the_alarms_of_one_by_one():
    rng = np.random.default_rng(5)
    references, streams = [], []
    for _ in range(2):
        references.append(Reference(rng.random(80), rng.integers(1, 9, 80)))
        turned = np.append(rng.random(200), rng.random(200) ** 4)
        turned[rng.random(400) < 0.05] = np.nan
        streams.append(Batch(turned, rng.integers(1, 9, 400).astype(float), np.full(400, np.nan)))
    promise = Promise(500)
    at_once = first_alarms(references, streams, promise)
    for number, (reference, stream) in enumerate(zip(references, streams, strict=True)):
        own = watch(start(Promise(500, seed=promise.seed + number), reference), stream)
        alarms = {name: one.alarm or 0 for name, one in own.monitors.items()}
        assert alarms == {name: places[number] for name, places in at_once.items()}
        assert alarms["probability"] > 200


def settings():
    return Settings(
        models={"m": "M"},
        tasks={"t": "Arithmetic", "u": "Capitals"},
        studies={"main": {"model": "m", "tasks": ["t", "u"]}},
    )


def test_it_is_shown(found):
    made = table.table({"shift_alarms": found}, settings())
    assert made.frame.height == 2
    assert made.frame["turned_to_label"].to_list() == ["no change", "Capitals"]
    assert any("10,000" in note for note in made.notes)


def test_without_answers_it_says_so():
    made = table.table({"shift_alarms": pl.DataFrame(schema=SHIFT_ALARMS)}, settings())
    assert made.footnotes == (table.NOTHING,)
