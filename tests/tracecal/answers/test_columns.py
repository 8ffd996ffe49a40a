"""Columns of one's own, in JSON Lines, Arrow and Parquet."""

import json
import math
import os
from pathlib import Path

import polars as pl
import pytest

import tracecal
from support.log_rows import write
from tracecal.answers.answers import read_file
from tracecal.answers.reading import Reading
from tracecal.errors import InputError

ROW = {"example_id": "a", "answer": "51", "surprisal": [0.5, 0.25], "entropy": [0.75, 0.5]}
CHAT = {
    "id": "a",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"content": "51"}, "finish_reason": "stop"}],
}


@pytest.fixture
def read(tmp_path):
    def reader(*rows, **reading):
        return read_file(write(tmp_path / "a.jsonl", rows), Reading(**reading))

    return reader


@pytest.mark.parametrize("suffix", ["jsonl", "json", "arrow", "parquet"])
def test_the_same_columns_in_every_container(tmp_path, suffix):
    path, frame = tmp_path / f"a.{suffix}", pl.DataFrame([ROW])
    if suffix == "arrow":
        frame.write_ipc(path)
    elif suffix == "parquet":
        frame.write_parquet(path)
    elif suffix == "json":
        path.write_text(json.dumps([ROW], indent=1), encoding="utf-8")
    else:
        write(path, [ROW])
    row = read_file(path).frame.row(0, named=True)
    assert {key: row[key] for key in ROW} == ROW
    assert row["lacks"] is None


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("logprobs", [-0.5, -0.25]),
        ("token_logprobs", [-0.5, -0.25]),
        ("probabilities", [math.exp(-0.5), math.exp(-0.25)]),
    ],
)
def test_probabilities_alone_give_surprisals_and_no_entropy(read, column, values):
    row = read({"id": "a", "text": "51", column: values}).frame.row(0, named=True)
    assert row["surprisal"] == pytest.approx([0.5, 0.25])
    assert row["entropy"] is None
    assert row["lacks"] == "no top log-probabilities are given"


def test_tokens_without_log_probabilities_are_an_answer_without_a_trace(read):
    row = read({"id": "a", "text": "51", "tokens": ["5", "1"], "entropy": [0.5, 0.5]}).frame.row(
        0, named=True
    )
    assert row["tokens"] == ["5", "1"]
    assert row["surprisal"] is None
    assert row["lacks"] == "no log-probabilities are given"


@pytest.mark.parametrize(
    "top", [[[-0.5, -1.5], [-0.25, -3.0]], [{"5": -0.5, "x": -1.5}, {"1": -0.25, "y": -3.0}]]
)
def test_the_likeliest_tokens_bound_the_entropies(read, top):
    row = {"id": "a", "text": "51", "logprobs": [-0.5, -0.25], "top_logprobs": top}
    found = read(row, vocabulary=100, rounding=0).frame.row(0, named=True)
    assert found["entropy_lower"][0] < found["entropy"][0] < found["entropy_upper"][0]
    tail = 1 - math.exp(-0.5) - math.exp(-1.5)
    upper = 0.5 * math.exp(-0.5) + 1.5 * math.exp(-1.5) - tail * math.log(tail / 98)
    assert found["entropy_upper"][0] == pytest.approx(upper, abs=1e-4)


def test_two_tokens_with_the_same_log_probability_both_count(read):
    row = {"id": "a", "text": "5", "logprobs": [-1.0], "top_logprobs": [[-1.0, -1.0]]}
    found = read(row, vocabulary=100, rounding=0).frame.row(0, named=True)
    tail = 1 - 2 * math.exp(-1.0)
    assert found["entropy_upper"][0] == pytest.approx(
        2 * math.exp(-1.0) - tail * math.log(tail / 98), abs=1e-4
    )


def test_labels_may_be_given(read):
    rows = [
        ROW | {"correct": True},
        ROW | {"example_id": "b", "correct": 0},
        ROW | {"example_id": "c", "label": 1},
        ROW | {"example_id": "d"},
    ]
    assert read(*rows).frame["correct"].to_list() == [True, False, True, None]


def test_rows_are_known_by_id_and_keep_their_order(read):
    rows = [ROW | {"example_id": name, "answer": name} for name in "cab"]
    frame = read(*rows).frame
    assert frame["example_id"].to_list() == frame["answer"].to_list() == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"surprisal": [-0.5, 0.25]}, "token 1 has the surprisal -0.5, not finite"),
        ({"surprisal": [math.nan, 0.25]}, "token 1 has the log-probability NaN"),
        ({"surprisal": None, "probabilities": [0.5, 1.5]}, "token 2 has the probability 1.5"),
        ({"surprisal": None, "probabilities": [0.0, 0.5]}, "token 1 has the probability 0"),
        ({"surprisal": None, "logprobs": [0.5, 0.5]}, "token 1 has the log-probability 0.5"),
        ({"surprisal": [0.5]}, "its lists have unequal lengths: 1 log-probabilities and 2"),
        ({"tokens": ["5"]}, "its lists have unequal lengths"),
        ({"entropy": [-1.0, 0.5]}, "token 1 has the entropy -1, not finite and at least 0"),
        ({"entropy": [math.nan, 0.5]}, "token 1 has the entropy nan"),
        ({"surprisal": [math.inf, 0.1]}, "token 1 has the surprisal inf"),
        ({"example_id": None}, "it has no id"),
        ({"surprisal": "0.5"}, "its surprisal is no list; expected a list with a number per token"),
        (
            {"surprisal": [0.1, ["a", 0.2]]},
            "entry 2 of its surprisal is no number; expected a list",
        ),
    ],
)
def test_wrong_rows(read, columns, reason):
    found = read(ROW, ROW | {"example_id": "b"} | columns, wrong_rows="skip")
    (told,) = found.wrong_rows
    assert told.startswith(f"line 2: {reason}")
    assert found.frame["example_id"].to_list() == ["a"]


def test_a_row_that_is_cut_short_is_listed(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + json.dumps(ROW)[:20], encoding="utf-8")
    with pytest.raises(InputError, match="line 2: it is not JSON"):
        read_file(path)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"example_id": ' + "[" * 100_000, "it is nested too deep"),
        *(
            (f'{{"example_id": "b", "answer": "x", "answer": "{text}"}}', "'answer' is given twice")
            for text in ("y", r"\u0022:", r"\"\u003a", r"\"\u003A")
        ),
    ],
)
def test_a_row_that_no_two_readers_read_alike_is_listed(tmp_path, row, reason):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + row, encoding="utf-8")
    with pytest.raises(InputError, match=f"line 2: it is not JSON .*{reason}"):
        read_file(path)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_refused_at_once(tmp_path, make):
    make(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="is not a file"):
        read_file(tmp_path / "a.jsonl")


def test_ids_that_the_task_does_not_know_are_wrong(tmp_path):
    path = write(tmp_path / "a.jsonl", [ROW])
    with pytest.raises(InputError, match="no example of the task has the id 'a'"):
        read_file(path, ids={"b"})


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.arrow", b"ARROW1 and no more"), ("a.parquet", b"PAR"), ("a.jsonl", b"\xff\xfe\x00")],
)
def test_foreign_bytes_are_one_sentence(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read|its bytes do not match"):
        read_file(path)


def test_a_file_that_is_not_there_or_empty(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_file(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="holds no usable answer"):
        read_file(write(tmp_path / "a.jsonl", []))


def test_the_line_ends_at_a_newline_alone(read):
    answer = "one\u2028two\x85three"
    assert read(ROW | {"answer": answer}).frame["answer"].to_list() == [answer]


def test_variants_of_a_question_share_a_group(read):
    rows = [ROW | {"group_id": 7}, ROW | {"example_id": "b"}]
    assert read(*rows).frame["group_id"].to_list() == ["7", None]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"answer": "\ud83d"}, "an unpaired surrogate"),
        ({"tokens": ["51", "\ud83d"]}, "an unpaired surrogate"),
        ({"token_ids": [5, 2**31]}, "more than 32 bits"),
        ({"prompt_token_ids": [-(2**31) - 1]}, "more than 32 bits"),
        ({"entropy": [40.0, 0.5]}, "entropies must be in nats"),
        ({"entropy_lower": [0.9, 0.5], "entropy_upper": [1.0, 0.5]}, "between their bounds"),
        ({"entropy": None, "top_logprobs": [[-5.0] * 60] * 2}, "more than the vocabulary's 50"),
        ({"surprisal": None, "probabilities": [1.1, 0.5]}, "has the probability 1.1"),
    ],
)
def test_what_cannot_be_is_listed(read, changed, reason):
    found = read(ROW | {"example_id": "b"}, ROW | changed, vocabulary=50, wrong_rows="skip")
    assert found.frame["example_id"].to_list() == ["b"]
    assert reason in found.wrong_rows[0]


@pytest.mark.parametrize(
    "entropies",
    [
        {"entropy": [0.5, 1e308]},
        {"entropy": [None, 21.0]},
        {"entropy": [0.5, 0.5], "entropy_upper": [0.5, 1e308]},
    ],
)
def test_no_vocabulary_allows_such_entropies(read, entropies):
    (reason,) = read(ROW | {"example_id": "b"}, ROW | entropies, wrong_rows="skip").wrong_rows
    assert "above 20.72, the most that any vocabulary allows: entropies must be in nats" in reason


def test_rounding_is_no_error(read):
    row = ROW | {"surprisal": None, "probabilities": [1.0000001, 0.5], "entropy": [-1e-9, 0.5]}
    found = read(row).frame.row(0, named=True)
    assert found["surprisal"] == pytest.approx([0, math.log(2)])
    assert found["entropy"] == [0.0, 0.5]


def test_a_byte_order_mark_and_endless_nesting(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\ufeff" + json.dumps(ROW) + "\n" + "[" * 100_000)
    found = read_file(path, Reading(wrong_rows="skip"))
    assert found.frame["example_id"].to_list() == ["a"]
    assert found.wrong_rows == ["line 2: it is not JSON (it is nested too deep)"]


def test_a_csv_holds_lists_as_json_and_columns_at_paths(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        'example_id,text,nll,more,correct\na,51,"[0.5, 0.25]","{""h"": [0.75, 0.5]}",1\nb,52,"[0.5]",,0\n',
        encoding="utf-8",
    )
    reading = Reading(
        columns={"answer": "text", "surprisal": "nll", "entropy": "more.h", "correct": "correct"}
    )
    frame = read_file(path, reading).frame
    assert frame["example_id"].to_list() == ["a", "b"]
    assert frame["answer"].to_list() == ["51", "52"]
    assert frame["surprisal"].to_list() == [[0.5, 0.25], [0.5]]
    assert frame["entropy"].to_list() == [[0.75, 0.5], None]
    assert frame["correct"].to_list() == [True, False]


def test_columns_may_lie_at_paths_of_json_rows(read):
    row = {"id": "a", "output": {"text": "51", "nll": [0.5]}, "surprisal": [9.0]}
    frame = read(row, columns={"answer": "output.text", "surprisal": "output.nll"}).frame
    assert frame["surprisal"].to_list() == [[0.5]]
    assert frame["answer"].to_list() == ["51"]


@pytest.mark.parametrize(
    "row",
    [
        ROW | {"correct": True, "label": False},
        {"id": "a", "response": ROW | {"correct": True}, "correct": False},
        {"id": "a", "request": {}, "response": ROW, "correct": True, "label": False},
        {"id": "a", "response": CHAT | {"correct": 0}, "label": "C"},
        CHAT | {"correct": True, "label": "I"},
    ],
)
def test_contradictory_verdicts_are_refused(read, row):
    with pytest.raises(InputError, match="its verdicts contradict each other"):
        read(row)


def test_a_verdict_at_a_path_that_envelope_and_answer_both_have_must_agree(read):
    row = {"id": "a", "response": CHAT | {"score": {"ok": 1}}, "score": {"ok": 1}}
    assert read(row, label="score.ok").frame["correct"].to_list() == [True]
    with pytest.raises(InputError, match="its verdicts contradict each other"):
        read(row | {"score": {"ok": 0}}, label="score.ok")


@pytest.mark.parametrize(
    "row", [CHAT | {"label": "C"}, {"id": "a", "request": {}, "response": CHAT, "label": 1}]
)
def test_a_servers_answer_is_labelled_beside_or_in_its_own_object(read, row):
    assert read(row).frame["correct"].to_list() == [True]


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (1795333618, 1795333618.0),
        ("1795333618.5", 1795333618.5),
        ("2026-11-22T07:46:58Z", 1795333618.0),
        ("2026-11-22 08:46:58+01:00", 1795333618.0),
        ("2026-11-22T07:46:58.500000000Z", 1795333618.5),
        ("2026-11-22T07:46:58", 1795333618.0),
        *((none, None) for none in (0, 1, 12.9, 1795333618000, True, "soon", "", "20261122", [1])),
    ],
)
def test_the_time_of_an_answer_is_read_where_it_is_one(read, time, seconds):
    own = {"id": "a", "logprobs": [-0.5]}
    rows = [own | {"created": time}, {**own, "created": 0, "timestamp": time}]
    rows += [{"id": "a", "startTime": time, "response": own | {"created": 0}}]
    for row in rows:
        assert read(row).frame["created"].to_list() == [seconds]
    mapped = {"id": "id", "logprobs": "logprobs", "created": "at.end"}
    assert read(own | {"at": {"end": time}}, columns=mapped).frame["created"].item() == seconds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("id,answer,logprobs,correct,correct\na,x,[-0.1],1,0\n", "several columns named 'correct'"),
        (
            "id,answer,logprobs\na,x,[-0.1],1\n",
            "row 1: it has 4 cells, and the head names 3 columns",
        ),
    ],
)
def test_a_table_whose_cells_have_no_column_of_their_own_is_refused(tmp_path, text, sentence):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_file(path)


LISTED = [{"token": "", "logprob": -0.5, "top_logprobs": None}]


@pytest.mark.parametrize("text", [{"answer": None}, {}])
@pytest.mark.parametrize(
    "trace",
    [{"logprobs": [-0.5]}, {"tokens": LISTED}, {"tokens": [""], "logprobs": [-0.5]}],
)
def test_a_log_may_leave_texts_out(read, text, trace):
    rows = [{"id": name, **text, **trace, "correct": True} for name in "ab"]
    frame = read(*rows).frame
    assert frame["surprisal"].to_list() == [[0.5], [0.5]]
    assert frame["no_answer"].null_count() == 2 and set(frame["stop_token"]) == {"unknown"}
    assert tracecal.explain_reading(rows).answers.equals(frame)


@pytest.mark.parametrize("text", ["", " "])
@pytest.mark.parametrize("trace", [{"logprobs": [-0.5]}, {"tokens": LISTED}])
def test_an_empty_text_is_an_answer_that_was_not_given_whatever_other_rows_hold(read, text, trace):
    rows = {"id": "a", "answer": text, **trace}, {"id": "b", "answer": "5", **trace}
    frame = read(*rows).frame
    assert frame["no_answer"].to_list() == ["empty", None] and frame["lacks"][0] == "empty"
    assert frame.row(0, named=True)["surprisal"] is frame.row(0, named=True)["tokens"] is None
    assert pl.concat([read(row).frame for row in rows]).equals(frame), "pieces of a split log"
    ended = {"id": "a", "answer": "", "tokens": ["</s>"], "logprobs": [-0.5]}
    assert read(ended, wrong_rows="skip").frame["no_answer"].to_list() == ["empty"]


@pytest.mark.parametrize(
    ("tokens", "answer", "kept"),
    [
        (["Os", "lo"], "Rome", None),
        (["Let", " me", " see", "Os", "lo"], "Oslo", ["Os", "lo"]),
        (["Os", "lo", "</s>"], "Oslo", ["Os", "lo", "</s>"]),
        (["▁Os", "lo"], "Oslo", ["▁Os", "lo"]),
        (["MÃ¼n", "chen"], "München", ["MÃ¼n", "chen"]),
        (["Os@@", "lo", ",", "&quot;"], 'Oslo, "', ["Os@@", "lo", ",", "&quot;"]),
        (["In", "Os", "##lo", "."], "In Oslo.", ["In", "Os", "##lo", "."]),
        (["Os", None], "Rome", None),
    ],
)
def test_tokens_of_own_columns_that_spell_another_text_are_none_of_the_answers(
    read, tokens, answer, kept
):
    logprobs = [-0.25 * n for n in range(len(tokens))]
    row = {"id": "a", "answer": answer, "tokens": tokens, "logprobs": logprobs, "entropy": logprobs}
    record = read(row | {"entropy": [-value for value in logprobs]}).frame.row(0, named=True)
    assert record["tokens"] == kept
    if kept:
        assert (
            record["surprisal"] == record["entropy"] == [-value for value in logprobs[-len(kept) :]]
        )
    else:
        is_known = None not in tokens
        assert (record["lacks"] == "the tokens spell another text") == is_known


@pytest.mark.parametrize("name", ["surprisal", "logprobs", "probabilities", "entropy"])
def test_true_and_false_are_no_numbers(read, name):
    row = {"id": "a", "answer": "x", "logprobs": [-0.1, -0.2]}
    with pytest.raises(InputError, match=f"{name} holds true or false in place of a number"):
        read(row | {name: [True, 0.5]})
