"""Trace files: whole, checked when read, and clear about what is wrong with them."""

import polars as pl
import pyarrow as pa
import pytest

from support.arrow_files import write_arrow
from tracecal.capture.tokens import token_texts
from tracecal.errors import InputError
from tracecal.io.traces import BEAMS, TRACES, arrow_metadata, provenance, read_arrow, read_traces

METADATA = provenance("tiny", "sha256:0", "float32", "greedy", seed=1)


def row(example="b", **changed):
    return {
        "example_id": example,
        "prompt": "?",
        "prompt_token_ids": [3, 4],
        "answer": "x",
        "token_ids": [5, 1],
        "tokens": ["x", "<end>"],
        "surprisal": [0.5, 0.25],
        "entropy": [0.75, 0.0],
        "finish_reason": "eos",
    } | changed


def test_rows_come_back_sorted_with_their_metadata(tmp_path):
    path = tmp_path / "traces" / "task.arrow"
    write_arrow([row("b"), row("a")], TRACES, METADATA, path)
    frame = read_traces(path)
    assert frame["example_id"].to_list() == ["a", "b"]
    assert frame.schema["surprisal"] == pl.List(pl.Float32)
    assert arrow_metadata(path) == METADATA
    assert {"schema_version", "model", "revision", "dtype", "decoding", "seed", "torch"} <= set(
        METADATA
    )
    assert [file.name for file in path.parent.iterdir()] == ["task.arrow"]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    write_arrow([row("b"), row("a")], TRACES, METADATA, tmp_path / "one/same")
    write_arrow([row("a"), row("b")], TRACES, METADATA, tmp_path / "two/same")
    assert (tmp_path / "one/same").read_bytes() == (tmp_path / "two/same").read_bytes()


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "task.arrow"
    write_arrow([row()], TRACES, METADATA, path)
    before = path.read_bytes()
    with pytest.raises(pa.ArrowException):
        write_arrow([row(surprisal=["not a number"])], TRACES, METADATA, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("keep", [0, 7, 200, -9])
def test_a_truncated_file_is_named(tmp_path, keep):
    path = tmp_path / "task.arrow"
    write_arrow([row()], TRACES, METADATA, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"task\.arrow cannot be read.*Make it again"):
        read_traces(path)


def test_a_foreign_file_is_named(tmp_path):
    path = tmp_path / "task.arrow"
    pl.DataFrame({"a": [1]}).write_ipc(path)
    with pytest.raises(InputError, match="schema version none, expected 1"):
        read_traces(path)
    path.write_text("example_id,surprisal\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_traces(path)


def test_a_missing_column_is_named(tmp_path):
    path = tmp_path / "beams.arrow"
    beams = {"example_id": "a", "beam_token_ids": [[1]], "beam_logprob": [-1.0], "beam_length": [1]}
    write_arrow([beams], BEAMS, METADATA, path)
    assert read_arrow(path).height == 1
    with pytest.raises(InputError, match="lacks the column.*surprisal"):
        read_traces(path, ["surprisal"])


@pytest.mark.parametrize(
    "broken",
    [
        {"surprisal": [0.5]},
        {"surprisal": [0.5, float("nan")]},
        {"entropy": [0.5, float("inf")]},
        {"surprisal": [-0.5, 0.5]},
        {"surprisal": [None, 0.5]},
        {"token_ids": [], "surprisal": [], "entropy": []},
        {"entropy": None},
    ],
)
def test_an_unsound_trace_names_its_example(tmp_path, broken):
    path = tmp_path / "task.arrow"
    write_arrow([row("a"), row("bad", **broken)], TRACES, METADATA, path)
    with pytest.raises(InputError, match="example 'bad'"):
        read_traces(path)


def test_token_texts_join_to_the_answer_in_every_script(tokenizer):
    for text in ("Wien, heißt es.", "中国的首都是 北京。", "नमस्ते", "a😀b"):
        ids = tokenizer(text)["input_ids"]
        texts = token_texts(tokenizer, [*ids, 1])
        assert len(texts) == len(ids) + 1
        assert "".join(texts) == text + "<end>"


def test_token_texts_of_a_character_cut_in_half(tokenizer):
    ids = tokenizer("😀")["input_ids"]
    assert len(ids) > 1
    texts = token_texts(tokenizer, ids[:-1])
    assert len(texts) == len(ids) - 1
    assert "".join(texts) == "\ufffd"


def test_entropies_may_be_unknown_only_where_the_file_says_so(tmp_path):
    path = tmp_path / "task.arrow"
    write_arrow([row("a"), row("b", entropy=None)], TRACES, METADATA, path)
    with pytest.raises(InputError, match="trace of example 'b'"):
        read_traces(path)
    told = METADATA | {"without_entropy": "1 of 2 answers"}
    write_arrow([row("a"), row("b", entropy=None)], TRACES, told, path)
    assert read_traces(path)["entropy"].null_count() == 1
    write_arrow([row("a", entropy=[-1.0, 0.0]), row("b", surprisal=None)], TRACES, told, path)
    with pytest.raises(InputError, match="trace of example 'a'"):
        read_traces(path)
