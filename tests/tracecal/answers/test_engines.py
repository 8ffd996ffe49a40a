"""The own forms of llama.cpp, Ollama and SGLang."""

import math

import pytest

from support.log_rows import TWO, token, write
from tracecal.answers.answers import read_file
from tracecal.answers.reading import Reading
from tracecal.errors import InputError


@pytest.fixture
def read(tmp_path):
    """Reads one answer as `response` of a row with an id; gives it as a dict."""

    def reader(body, **reading):
        path = write(tmp_path / "a.jsonl", [{"example_id": "q1", "response": body}])
        return read_file(path, Reading(**{"vocabulary": 1000} | reading)).frame.row(0, named=True)

    return reader


def llama(*tokens, text=" 51", **more):
    return {"content": text, "stop_type": "eos", "completion_probabilities": list(tokens)} | more


def decoded(id_, text, value, top, kind="logprob", tops="top_logprobs"):
    listed = [{"id": i, "token": t, "bytes": list(t.encode()), kind: v} for i, t, v in top]
    return {"id": id_, "token": text, "bytes": list(text.encode()), kind: value, tops: listed}


def test_llama_cpp(read):
    row = read(llama(decoded(3971, " 51", -0.02, [(3971, " 51", -0.02), (4000, " 50", -4.5)])))
    assert row["example_id"] == "q1"
    assert row["answer"] == " 51"
    assert row["token_ids"] == [3971]
    assert row["surprisal"] == pytest.approx([0.02])
    assert row["finish_reason"] == "eos"
    assert row["stop_token"] == "absent"
    assert row["processed"] == "no"


def test_llama_cpp_probabilities_after_sampling_are_processed(read):
    one = decoded(1, " 51", 0.9, [(1, " 51", 0.9), (2, "x", 0.1)], "prob", "top_probs")
    row = read(llama(one))
    assert row["surprisal"] == pytest.approx([-math.log(0.9)])
    assert row["processed"] == "yes"


def test_an_old_build_of_llama_cpp(read):
    one = {"content": " B", "probs": [{"tok_str": " B", "prob": 0.44}, {"tok_str": "C", "prob": 0}]}
    row = read(llama(one, text=" B"))
    assert row["surprisal"] == pytest.approx([-math.log(0.44)])
    assert row["processed"] == "yes"


def test_an_old_build_that_chose_a_token_it_does_not_list(read):
    one = {"content": " Z", "probs": [{"tok_str": " B", "prob": 0.44}]}
    assert read(llama(one, text=" Z"))["surprisal"] is None


def test_a_token_of_an_old_build_that_is_a_number_is_refused(read):
    with pytest.raises(InputError, match="one of its tokens is 5, no text"):
        read(llama({"content": 5, "probs": [{"tok_str": " B", "prob": 0.44}]}, text=" B"))


def test_tokens_of_llama_cpp_that_share_an_empty_text_are_told_apart_by_id(read):
    top = [(1, "", -1.0), (2, "", -1.0), (3, "a", -2.0)]
    row = read(llama(decoded(1, "", -1.0, top), text="a"), rounding=0)
    two = math.exp(-1.0) + math.exp(-1.0) + math.exp(-2.0)
    assert row["entropy_upper"][0] == pytest.approx(
        2 * math.exp(-1) + 2 * math.exp(-2) - (1 - two) * math.log((1 - two) / 997), abs=1e-4
    )


@pytest.mark.parametrize(
    "text",
    [{"response": "51"}, {"message": {"role": "assistant", "content": "51"}}],
)
def test_ollama(read, text):
    told = [
        {key: t[key] for key in ("token", "logprob")} for t in token("", 0, TWO)["top_logprobs"]
    ]
    logprobs = [{"token": "51", "logprob": -0.25, "top_logprobs": told}]
    body = {"model": "m", "done": True, "done_reason": "stop", "logprobs": logprobs}
    row = read(body | text)
    assert row["answer"] == "51"
    assert row["surprisal"] == pytest.approx([0.25])
    assert row["stop_token"] == "absent"
    assert row["entropy"] is not None


def test_a_row_of_ollama_without_a_wrapper(tmp_path):
    body = {"custom_id": "q1", "model": "m", "response": "51", "done": True, "done_reason": "stop"}
    row = read_file(write(tmp_path / "a.jsonl", [body])).frame.row(0, named=True)
    assert row["answer"] == "51"
    assert row["lacks"] == "no log-probabilities are given"


def sglang(chosen, tops=None, ids=None, text="51"):
    meta = {"finish_reason": {"type": "stop"}, "prompt_tokens": 5, "output_token_logprobs": chosen}
    body = {"text": text, "meta_info": meta | ({"output_top_logprobs": tops} if tops else {})}
    return body | ({"output_ids": ids} if ids else {})


def test_sglang(read):
    chosen = [[-0.73, 12095, None], [-0.1, 2, None]]
    tops = [[[-0.73, 12095, None], [-2.73, 2130, None]], [[-0.1, 2, None], [-3.0, 5, None]]]
    row = read(sglang(chosen, tops, [12095, 2]))
    assert row["surprisal"] == pytest.approx([0.73, 0.1])
    assert row["token_ids"] == [12095, 2]
    assert row["stop_token"] == "unknown"  # no texts to compare
    assert row["tokens"] is None
    assert len(row["entropy"]) == 2


def test_sglang_with_texts_shows_its_stop_token(read):
    row = read(sglang([[-0.7, 1, "51"], [-0.1, 2, "<|im_end|>"]]))
    assert row["stop_token"] == "included"
    assert row["tokens"] == ["51", "<|im_end|>"]


def test_a_null_step_of_sglang_is_not_guessed(read):
    row = read(sglang([[-0.7, 1, None], None], [[[-0.7, 1, None]], None]))
    assert row["surprisal"] is None
    assert row["entropy"] is None
    assert row["lacks"] == "the log-probability of token 2 is not given"


def test_sglang_with_lists_of_unequal_lengths_is_wrong(tmp_path):
    bad = {"id": "a", **sglang([[-0.7, 1, None]], [[[-0.7, 1, None]], None])}
    good = {"id": "b", **sglang([[-0.7, 1, None]])}
    path = write(tmp_path / "a.jsonl", [bad, good])
    found = read_file(path, Reading(wrong_rows="skip"))
    assert found.wrong_rows == ["line 1: it has 1 tokens and 2 lists of the most likely"]
    assert found.frame["example_id"].to_list() == ["b"]
