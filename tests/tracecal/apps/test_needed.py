"""`tracecal label --error-rate`: which label is asked for next, and what is promised at the end."""

import json

import httpx2 as httpx
import numpy as np
import polars as pl
import pytest

from support.made import answers
from support.upstream import Background
from tracecal.answers.read import read_answers
from tracecal.apps.explorer.of_file import fits, page_data
from tracecal.apps.label_page import Labelling, LabelQuery, Verdict, Verdicts, scores
from tracecal.errors import InputError

FRAME = answers(300)
SCORES = (-FRAME["entropy"].list.mean()).to_list()
TRUTH = dict(zip(FRAME["example_id"], FRAME["correct"], strict=True))


def asking(rate=0.3, population="finite", frame=FRAME, values=SCORES):
    return LabelQuery(frame, values, rate, 0.9, population, 1)


def labelled(search, most=10**9):
    given = {}
    while len(given) < most and (example := search.ask(given)[0]) is not None:
        given[example] = Verdict(TRUTH[example])
    return given


@pytest.mark.parametrize("population", ["finite", "further"])
def test_labels_are_asked_for_until_the_promise_stands_or_cannot(population):
    search = asking(population=population)
    given = labelled(search)
    assert 0 < len(given) < FRAME.height
    stored = search.stored(given, "trace")
    assert stored["ended"] in ("passed", "failed")
    assert stored["labels"] == len(given)
    kept = np.array(SCORES) >= stored["threshold"]
    assert stored["coverage"] == pytest.approx(kept.mean())
    if population == "finite":
        assert 1 - FRAME["correct"].to_numpy()[kept].mean() <= 0.3
    said = search.ask(given)[1]
    assert f"{len(given)} labelled; promised: at most 30% are incorrect" in said


def test_the_next_label_depends_on_the_verdicts_and_not_on_their_order():
    search = asking()
    given = labelled(search, 25)
    turned = dict(reversed(given.items()))
    assert asking().ask(turned)[0] == search.ask(given)[0]


def test_unsure_counts_as_wrong():
    search, other = asking(), asking()
    given = labelled(search, 20)
    unsure = {one: verdict if verdict.correct else Verdict(None) for one, verdict in given.items()}
    assert search.ask(given) == other.ask(unsure)


def test_the_page_shows_the_answer_whose_label_is_needed(tmp_path, content):
    FRAME.head(60).write_ndjson(tmp_path / "all.jsonl")
    read = read_answers(tmp_path / "all.jsonl", with_rows=True)
    data = page_data(read, "all.jsonl", fits(content, "made up"))
    name, values = scores(data, None)
    assert name == "trace_plus"
    search = asking(0.4, frame=read.frame, values=values)
    ids = read.frame["example_id"].to_list()
    verdicts = Verdicts(tmp_path / "out.jsonl", dict(zip(ids, read.rows, strict=True)))
    labelling = Labelling(data, verdicts, search.ask)
    following = labelling.shown()["labelling"]["next"]
    with Background(labelling.application()) as serving:
        address = f"{serving.url}/{labelling.token}/verdict"
        for _ in range(3):
            assert ids[following] == search.ask(verdicts.given)[0]
            verdict = {"answer": following, "correct": TRUTH[ids[following]]}
            reply = httpx.post(address, json=verdict).json()
            following = reply["next"]
            assert "3 labelled" in reply["said"] or len(verdicts.given) < 3
    verdicts.close()


def test_a_score_is_needed():
    data = {"answers": {"probability": {}, "score": {"min_prob": [None, 0.5]}}}
    assert scores(data, "min_prob") == ("min_prob", [None, 0.5])
    with pytest.raises(InputError, match="there is min_prob"):
        scores(data, None)


@pytest.mark.parametrize("rate, confidence, told", [(1.5, 0.9, "--error-rate"), (0.1, 1, "--conf")])
def test_rates_out_of_range_are_refused(rate, confidence, told):
    with pytest.raises(InputError, match=told):
        LabelQuery(FRAME, SCORES, rate, confidence, "finite", 1)


def test_answers_of_one_question_are_asked_for_together():
    """A group's kept answers are one unit of the random order."""
    twins = FRAME.with_columns(group_id=pl.format("g{}", pl.int_range(pl.len()) // 2))
    search = asking(0.5, frame=twins, values=[1.0] * twins.height)
    given = labelled(search, 20)
    groups = twins.filter(pl.col("example_id").is_in(list(given)))["group_id"]
    assert groups.n_unique() == 10
    assert json.dumps(search.stored(given, "x"))
