"""`tracecal label --error-rate`: which label is asked for next, and what is guaranteed at the end."""

import json

import httpx2 as httpx
import numpy as np
import polars as pl
import pytest

from support.labelled_answers import answers
from support.upstream import Background
from tracecal.answers.read import read_file
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.explorer.of_file import fits, page_data, scores
from tracecal.labelling.draw import random_order
from tracecal.labelling.page import LabelPage
from tracecal.labelling.record import Recorded, said
from tracecal.labelling.search import LabelQuery, Verdict, Wanted
from tracecal.labelling.verdicts import Verdicts

FRAME = answers(300)
SCORES = (-FRAME["entropy"].list.mean()).to_list()
TRUTH = dict(zip(FRAME["example_id"], FRAME["correct"], strict=True))


def query(rate=0.3, population="finite", frame=FRAME, values=SCORES, seed=1, largest=None):
    return LabelQuery(frame, values, Wanted("trace", rate, 0.9, population, largest, seed))


def labelled(search, most=10**9):
    given = {}
    while len(given) < most and (example := search.record(given)["next"]) is not None:
        given[example] = Verdict(TRUTH[example])
    return given


@pytest.mark.parametrize("population", ["finite", "further"])
def test_labels_are_asked_for_until_the_guarantee_stands_or_cannot(population):
    search = query(population=population)
    given = labelled(search)
    assert 0 < len(given) < FRAME.height
    record = search.record(given)
    assert record["ended"] in ("passed", "failed")
    assert record["labels"] == len(given)
    kept = np.array(SCORES) >= record["threshold"]
    assert record["coverage"] == pytest.approx(kept.mean())
    if population == "finite":
        assert 1 - FRAME["correct"].to_numpy()[kept].mean() <= 0.3
    told = said(record | {"tried": []})
    assert f"guaranteed: at most 30% are incorrect among the {kept.mean():.1%} of" in told


def test_the_next_label_depends_on_the_verdicts_and_not_on_their_order():
    given = labelled(query(), 25)
    turned = dict(reversed(given.items()))
    assert query().record(turned) == query().record(given)


def test_unsure_counts_as_wrong():
    given = labelled(query(), 20)
    unsure = {one: verdict if verdict.correct else Verdict(None) for one, verdict in given.items()}
    assert query().record(given) == query().record(unsure)


def test_single_answers_are_asked_for_in_the_order_in_which_pick_draws_them():
    order = random_order(FRAME, 1)["example_id"].to_list()
    asked = [*labelled(query(values=[1.0] * FRAME.height), 15)]
    assert asked == order[:15]


@pytest.mark.parametrize("shuffled", [FRAME, FRAME.sample(fraction=1, shuffle=True, seed=3)])
def test_the_order_of_the_file_does_not_matter(shuffled):
    values = (-shuffled["entropy"].list.mean()).to_list()
    for population in ("finite", "further"):
        record = query(frame=shuffled, values=values, population=population).record({})
        assert record == query(population=population).record({})


def grouped_frame():
    """Groups of one, two and three answers."""
    return FRAME.with_columns(group_id=pl.format("g{}", pl.int_range(pl.len()) // 6 * 3 + GROUP))


GROUP = pl.Series([0, 1, 1, 2, 2, 2] * 50)


def test_of_this_file_single_answers_are_asked_for_and_of_further_ones_one_of_a_question():
    frame, alike = grouped_frame(), [1.0] * FRAME.height
    group = dict(zip(frame["example_id"], frame["group_id"], strict=True))
    finite = labelled(query(0.5, "finite", frame, alike), 40)
    assert len({group[one] for one in finite}) < 40
    further = query(0.5, "further", frame, alike)
    asked = labelled(further, 40)
    assert len({group[one] for one in asked}) == len(asked)
    record = further.record(asked)
    assert record["largest_group"] == 3 and query(frame=frame).record({})["largest_group"] is None
    assert "a question counting with at most 3 of them" in said(
        record | {"threshold": 1, "tried": []}
    )
    stated = query(0.5, "further", frame, alike, largest=1).record({})
    assert stated["largest_group"] == 1


def test_the_record_is_written_before_the_next_question_and_holds_what_was_tried(tmp_path):
    path = tmp_path / "labelled.promise.json"
    first = Recorded(query(seed=1), path)
    assert first.ask({})[0] == json.loads(path.read_text())["next"]
    given = labelled(query(seed=1))
    example, told = first.ask(given)
    record = json.loads(path.read_text())
    assert record | {"tried": [], "joint_confidence": 0.9} == record
    assert (record["seed"], record["error_rate"], example) == (1, 0.3, None)
    assert "search" not in told
    # The same once more, with fewer labels: nothing else has been tried.
    Recorded(query(seed=1), path).ask(labelled(query(seed=1), 30))
    assert json.loads(path.read_text())["tried"] == []
    # One that found no label that it asked for has seen nothing.
    Recorded(query(seed=1), path).ask(given)
    Recorded(query(seed=5), path).ask({})
    Recorded(query(seed=2), path).ask(given)
    _, told = Recorded(query(0.2, seed=2), path).ask(given)
    record = json.loads(path.read_text())
    assert [(one["seed"], one["error_rate"]) for one in record["tried"]] == [(1, 0.3), (2, 0.3)]
    assert record["joint_confidence"] == 0.7
    assert (
        "search 3 on these labels: whoever chooses among them has at least 70% confidence" in told
    )
    # Other scores under the same name are another search.
    Recorded(query(0.2, seed=2, values=[-one for one in SCORES]), path).ask(given)
    assert len(json.loads(path.read_text())["tried"]) == 3


def test_choosing_among_ten_seeds_is_what_the_joint_confidence_is_for():
    """On labels at hand of a file that just misses its rate: one seed is wrong in at most one
    in ten, the best of ten more often, and the record says so."""
    rng = np.random.default_rng(0)
    queries = [query(values=[1.0] * 300, seed=seed) for seed in range(10)]
    alone = best = 0
    for _ in range(100):
        right = rng.permutation(np.arange(300) >= 91).tolist()
        given = dict(zip(FRAME["example_id"], map(Verdict, right), strict=True))
        found = [one.record(given)["threshold"] is not None for one in queries]
        alone += found[0]
        best += any(found)
    assert alone <= 10 + 9 < best


@pytest.mark.parametrize("content", ["[]", "{}", '{"threshold": 0.5, "labels": 3}'])
def test_another_file_is_not_written_over(tmp_path, content):
    path = tmp_path / "labelled.promise.json"
    path.write_text(content)
    with pytest.raises(InputError, match="is not a record as this 'tracecal label' writes it"):
        Recorded(query(), path)
    assert path.read_text() == content


def test_without_a_page_the_verdicts_at_hand_are_looked_at_as_far_as_they_go(
    tmp_path, monkeypatch, caplog
):
    """An export, then a file of `label` itself: as if the labels had been asked for one by one."""
    monkeypatch.chdir(tmp_path)
    FRAME.with_columns(correct=None).write_ndjson("all.jsonl")
    told = ["label", "all.jsonl", "--error-rate", "0.3", "--estimator", "mean_token_entropy"]
    read = read_file("all.jsonl", keep_rows=True)
    search = query(values=scores(page_data(read, "all", {}), "mean_token_entropy")[1], seed=2026)
    asked = labelled(search, 60)
    others = [one for one in FRAME["example_id"] if one not in asked][::9]
    following = search.record(asked)["next"]
    export = [
        {"id": one, "responses": {"v": [{"value": "right" if TRUTH[one] else "wrong"}]}}
        for one in sorted({*asked, *others} - {following})
    ]
    (tmp_path / "export.json").write_text(json.dumps(export))
    assert main([*told, "--labels", "export.json"]) == 0
    record = json.loads((tmp_path / "all.labelled.promise.json").read_text())
    estimator = {"estimator": "mean_token_entropy"}
    assert record == search.record(asked) | estimator | {"tried": [], "joint_confidence": 0.9}
    assert (record["labels"], record["next"]) == (60, following)
    assert record["threshold"] is not None and len(export) > 60
    assert f"the next label needed is that of '{following}'" in caplog.text
    again = ["--labels", "all.labelled.jsonl", "--output", "copy.jsonl"]
    assert main([*told, *again]) == 0
    copied = json.loads((tmp_path / "copy.promise.json").read_text())
    assert copied == record
    assert main([*told, "--labels", "all.labelled.jsonl"]) == 0  # its own file: nothing is new
    assert json.loads((tmp_path / "all.labelled.promise.json").read_text()) == record


def test_the_page_shows_the_answer_whose_label_is_needed(tmp_path, content):
    FRAME.head(60).write_ndjson(tmp_path / "all.jsonl")
    read = read_file(tmp_path / "all.jsonl", keep_rows=True)
    data = page_data(read, "all.jsonl", fits(content, "made up"))
    name, values = scores(data, None)
    assert name == "trace_plus"
    assert scores(data, None, "log_ridge")[0] == "log_ridge", "what the calibrator recommends"
    assert scores(data, None, "beam_ratio")[0] == "trace_plus", "the answers lack that"
    search = query(0.4, frame=read.frame, values=values)
    ids = read.frame["example_id"].to_list()
    verdicts = Verdicts(tmp_path / "out.jsonl", dict(zip(ids, read.rows, strict=True)))
    recorded = tmp_path / "out.promise.json"
    labelling = LabelPage(data, verdicts, Recorded(search, recorded).ask)
    following = labelling.shown()["labelling"]["next"]
    with Background(labelling.application()) as serving:
        address = f"{serving.url}/{labelling.token}/verdict"
        for _ in range(3):
            record = json.loads(recorded.read_text())
            assert ids[following] == record["next"] == search.record(verdicts.given)["next"]
            verdict = {"answer": following, "correct": TRUTH[ids[following]]}
            reply = httpx.post(address, json=verdict).json()
            following = reply["next"]
            assert "3 labelled" in reply["said"] or len(verdicts.given) < 3
    verdicts.close()


def test_a_verdict_is_not_stored_where_the_record_cannot_be(tmp_path, monkeypatch):
    FRAME.head(9).write_ndjson(tmp_path / "all.jsonl")
    read = read_file(tmp_path / "all.jsonl", keep_rows=True)
    data = page_data(read, "all.jsonl", {})
    ids = read.frame["example_id"].to_list()
    verdicts = Verdicts(tmp_path / "out.jsonl", dict(zip(ids, read.rows, strict=True)))
    recorded = Recorded(query(frame=read.frame, values=SCORES[:9]), tmp_path / "out.promise.json")
    labelling = LabelPage(data, verdicts, recorded.ask)
    before = (tmp_path / "out.promise.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device", "out.promise.json")

    with Background(labelling.application()) as serving:
        address = f"{serving.url}/{labelling.token}"
        verdict = {"answer": labelling.shown()["labelling"]["next"], "correct": True}
        with monkeypatch.context() as patched:
            patched.setattr("tracecal.labelling.record.write_json", full)
            reply = httpx.post(f"{address}/verdict", json=verdict)
        assert reply.status_code == 507
        assert "out.promise.json cannot be written (No space left on device)" in reply.text
        assert not verdicts.given and not (tmp_path / "out.jsonl").read_bytes()
        assert (tmp_path / "out.promise.json").read_bytes() == before
        assert httpx.post(f"{address}/verdict", json=verdict).status_code == 200
    verdicts.close()


def test_a_score_is_needed():
    data = {"answers": {"probability": {}, "score": {"min_prob": [None, 0.5]}}}
    assert scores(data, "min_prob") == ("min_prob", [None, 0.5])
    with pytest.raises(InputError, match="there is min_prob"):
        scores(data, None)


@pytest.mark.parametrize(
    "changed, told",
    [
        ({"error_rate": 1.5}, "--error-rate 1.5"),
        ({"confidence": 1}, "--confidence 1"),
        ({"largest_group": 3}, "--largest-group is for --population further"),
        ({"largest_group": 0, "population": "further"}, "--largest-group 0: expected 1 or more"),
    ],
)
def test_settings_out_of_range_are_refused(changed, told):
    settings = {"error_rate": 0.1, "confidence": 0.9, "population": "finite", "seed": 1}
    with pytest.raises(InputError, match=told):
        Wanted("trace", **({"largest_group": None} | settings | changed))
