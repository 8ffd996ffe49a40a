"""Answers drawn to be labelled: a random order of whole groups, and rows that lose nothing."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from scipy.stats import chisquare

import tracecal
from support.labelled_answers import answers
from tracecal.answers.answers import read_file
from tracecal.cli.main import main
from tracecal.labelling.draw import random_order

TWINS = answers(40).with_columns(group_id=pl.format("g{}", pl.int_range(pl.len()) // 2))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ids(path):
    return [json.loads(line)["example_id"] for line in path.read_text().splitlines()]


def test_the_order_depends_on_the_seed_alone_and_keeps_groups_whole():
    order = random_order(TWINS, 1)
    assert order.equals(random_order(TWINS.sample(fraction=1, shuffle=True, seed=3), 1))
    assert not order.equals(random_order(TWINS, 2))
    assert order["place"].to_list() == [place for place in range(20) for _ in range(2)]
    joined = order.join(TWINS, on="example_id")
    assert joined.group_by("place").agg(pl.col("group_id").n_unique())["group_id"].max() == 1


def test_every_prefix_is_a_random_sample():
    """Each group is among the first five of twenty as often as any other."""
    frame = TWINS.gather_every(2)
    from_file = Counter(
        example
        for seed in range(120)
        for example in random_order(frame, seed).filter(pl.col("place") < 5)["example_id"]
    )
    assert len(from_file) == 20
    # Draws without replacement vary less than a multinomial: the test is on the safe side.
    assert chisquare(list(from_file.values())).pvalue > 0.01


def test_a_larger_draw_begins_with_a_smaller_one(folder):
    TWINS.write_ndjson("all.jsonl")
    for number in (7, 20):
        options = ["--number", str(number), "--output", f"{number}.jsonl"]
        assert main(["pick", "--answers", "all.jsonl", *options]) == 0
    fewer, more = (ids(folder / f"{number}.jsonl") for number in (7, 20))
    assert len(fewer) == 8  # the fourth pair is whole
    assert more[:8] == fewer
    assert len(more) == 20


def test_rows_are_those_of_the_file_whatever_its_format(folder):
    token = {"token": "51", "logprob": -0.25, "top_logprobs": [{"token": "51", "logprob": -0.25}]}
    choice = {"message": {"content": "51"}, "logprobs": {"content": [token]}}
    rows = [
        {"custom_id": f"q{n}", "response": {"choices": [choice], "model": "m"}, "mine": n}
        for n in range(9)
    ]
    (folder / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main("pick --answers all.jsonl --number 9 --output pick.jsonl".split()) == 0
    picked = [json.loads(line) for line in (folder / "pick.jsonl").read_text().splitlines()]
    assert sorted(picked, key=lambda row: row["mine"]) == rows


def test_traces_keep_what_their_file_says_of_them(folder):
    traces = answers(6).drop("model", "stop_token", "processed")
    stated = {"schema_version": "1", "model": "tiny"}
    traces.to_arrow().replace_schema_metadata(stated)
    traces.write_parquet("all.parquet", metadata=stated)
    assert main("pick --answers all.parquet --number 6 --output pick.jsonl".split()) == 0
    known = ["model", "stop_token", "processed", "surprisal", "entropy"]
    from_file, from_pick = (
        read_file(folder / name).frame for name in ("all.parquet", "pick.jsonl")
    )
    assert (
        from_pick.sort("example_id")
        .select(known)
        .equals(from_file.sort("example_id").select(known))
    )


@pytest.mark.parametrize("number", [0, 41])
def test_a_number_that_cannot_be_drawn_is_refused(folder, caplog, number):
    TWINS.write_ndjson("all.jsonl")
    options = ["--number", str(number), "--output", "pick.jsonl"]
    assert main(["pick", "--answers", "all.jsonl", *options]) == 1
    assert "ask for 1 to 40" in caplog.text
    assert not (folder / "pick.jsonl").exists()


def test_a_long_log_is_read_once_more_and_gives_the_same(folder, caplog, monkeypatch):
    """For `pick` and `explore`: with labels, choices of a row and a named column, each said once."""
    two = {"choices": [{"index": n, "text": f"It is {n}."} for n in (0, 1)], "question": "Two?"}
    logprobs = {"tokens": ["It", " is"], "token_logprobs": [-0.25, -0.5]}
    rows = [
        {
            "id": f"q{n}",
            "question": f"Which is {n}?",
            "choices": [{"text": "5", "logprobs": logprobs}],
        }
        for n in range(30)
    ]
    lines = [json.dumps(row) for row in (*rows, two | {"id": "two"})]
    (folder / "log.jsonl").write_text("\n".join(lines))
    (folder / "labels.csv").write_text(
        "id,correct\n" + "".join(f"q{n},{n % 2}\n" for n in range(30))
    )
    reading = tracecal.Reading(labels="labels.csv")

    def outcome():
        caplog.clear()
        frame = tracecal.pick("log.jsonl", 10, output="pick.jsonl", unit="answers", reading=reading)
        tracecal.explore("log.jsonl", "page.html", number=12, reading=reading)
        lines = [record.getMessage() for record in caplog.records]
        return frame, Path("pick.jsonl").read_text(), Path("page.html").read_text(), lines

    caplog.set_level("INFO")
    frame, *held = outcome()
    monkeypatch.setattr("tracecal.answers.answers.MOST_HELD", 0)
    again, *read_again = outcome()
    assert again.equals(frame)
    assert read_again == held
    assert frame["correct"].count() >= 8


def test_a_log_that_changes_while_it_is_read_is_refused(folder, monkeypatch):
    TWINS.write_ndjson("all.jsonl")
    monkeypatch.setattr("tracecal.answers.answers.MOST_HELD", 0)

    def draw(*_):
        TWINS.head(1).write_ndjson("all.jsonl")
        return TWINS["example_id"].to_list()

    monkeypatch.setattr("tracecal.labelling.draw.draw_answers", draw)
    with pytest.raises(tracecal.InputError, match=r"all\.jsonl has changed while it was read"):
        tracecal.pick("all.jsonl", 20)
