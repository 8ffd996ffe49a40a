"""OpenAI's forms and the traps in them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as shannon

from support.log_rows import END, TWO, batch, chat, token, write
from tracecal.answers import answers
from tracecal.answers.answers import read_file
from tracecal.answers.reading import Reading
from tracecal.answers.row import as_frame, read_row
from tracecal.answers.trace import entropy_bounds
from tracecal.errors import InputError


@pytest.fixture
def read(tmp_path):
    """Reads rows; gives the first answer as a dict."""

    def reader(*rows, **reading):
        path = write(tmp_path / "answers.jsonl", rows)
        return read_file(path, Reading(**{"vocabulary": 1000} | reading)).frame.row(0, named=True)

    return reader


@pytest.fixture
def wrong(tmp_path):
    """What is wrong with rows, beside a sound one."""

    def reader(*rows, **reading):
        path = write(tmp_path / "answers.jsonl", [batch(chat(), "sound"), *rows])
        return read_file(path, Reading(wrong_rows="skip", vocabulary=1000, **reading)).wrong_rows

    return reader


def test_a_batch_line_of_vllm(read):
    body = chat(token_ids=[3971, 2]) | {"prompt_token_ids": [1, 2, 3]}
    row = read(batch(body))
    assert row["example_id"] == "svamp-17"
    assert row["answer"] == "51"
    assert row["surprisal"] == pytest.approx([0.25, 0.01])
    assert row["token_ids"] == [3971, 2]
    assert row["prompt_token_ids"] == [1, 2, 3]
    assert row["tokens"] == ["51", "<|im_end|>"]
    assert row["model"] == "m"
    assert all(
        low < middle < high
        for low, middle, high in zip(
            row["entropy_lower"], row["entropy"], row["entropy_upper"], strict=True
        )
    )


def test_the_stop_token_is_seen_where_it_is_counted(read):
    assert read(batch(chat()))["stop_token"] == "included"


def test_the_stop_token_is_seen_to_be_absent(read):
    assert read(batch(chat([token("51", -0.25, TWO)])))["stop_token"] == "absent"


def test_an_answer_that_was_cut_has_no_stop_token(read):
    assert read(batch(chat([token("51", -0.25, TWO)], finish="length")))["stop_token"] == "none"


def test_a_stop_token_without_a_text_of_its_own_is_seen(read):
    content = [token("51", -0.25, TWO), token("", -0.01, [("", -0.01), ("", -6.0)])]
    assert read(batch(chat(content)))["stop_token"] == "included"


@pytest.mark.parametrize(("end", "said"), [(["<|im_end|>"], "included"), ([], "unknown")])
def test_parts_of_characters_do_not_hide_the_stop_token(read, end, said):
    """As in 'Sulţān', whose third character is two tokens."""
    texts = ["Sul", "\ufffd", "\ufffd", "ān", *end]
    content = [token(text, -0.25, [(text, -0.25)]) for text in texts]
    assert read(batch(chat(content, text="Sulţān")))["stop_token"] == said


def test_texts_that_do_not_match_leave_the_stop_token_unknown(read):
    assert read(batch(chat(text="after a parser")))["stop_token"] == "unknown"


def test_the_configuration_can_state_the_stop_token(read):
    assert read(batch(chat(text="after a parser")), stop_token="absent")["stop_token"] == "absent"


def test_minus_9999_among_the_likeliest_is_no_number(read):
    padded = [token("51", -0.25, [*TWO, ("x", -9999.0)]), token("<|im_end|>", -0.01, END)]
    assert read(batch(chat(padded))) == read(batch(chat()))


def test_minus_9999_of_the_chosen_token_leaves_the_surprisals_unknown(read):
    row = read(batch(chat([token("51", -9999.0, TWO), token("<|im_end|>", -0.01, END)])))
    assert row["surprisal"] is None
    assert row["lacks"] == "the log-probability of token 1 is not given"
    assert row["entropy"] is not None  # the list still bounds it


def test_a_token_listed_twice_counts_once(read):
    twice = [token("51", -0.25, [TWO[0], *TWO]), token("<|im_end|>", -0.01, [*END, END[0]])]
    assert read(batch(chat(twice))) == read(batch(chat()))


A, B = list(b"51"), list(b"50")


@pytest.mark.parametrize(
    ("chosen", "listed"),
    [
        ({"token": "51", "bytes": None}, {"token": "51", "bytes": A}),
        ({"token": "51", "bytes": A}, {"token": "51", "bytes": None}),
        ({"token": "51", "id": 0}, {"token": "?", "id": 0}),
        ({"token": "51", "id": 7}, {"token": "51", "bytes": A}),
        ({"token": "51"}, {"token": " 51"}),
        ({"token": " 51"}, {"token": "▁51"}),
        ({"token": "51"}, {"token": "51", "logprob": -0.2500123}),
        ({"token": "51"}, {"bytes": A}),
    ],
)
def test_one_token_under_two_keys_counts_once(read, chosen, listed):
    """Were it its own rival, the probabilities would sum to more than 1 here."""
    other = {"token": "50", "logprob": -2.0, "bytes": listed.get("bytes") and B}
    top = [{"logprob": -0.25} | listed, other]
    row = read(batch(chat([{"logprob": -0.25, "top_logprobs": top} | chosen], finish="length")))
    plain = read(batch(chat([token("51", -0.25, TWO)], finish="length")))
    assert row["entropy_upper"] == pytest.approx(plain["entropy_upper"], abs=1e-3)
    assert row["top_k"] == plain["top_k"] == 2


@pytest.mark.parametrize(
    ("chosen", "top"),
    [
        (("51", -0.8), [("49", -0.9), ("50", -2.0)]),
        (("51", -0.8), [("51", -1.4), ("50", -2.0)]),  # it has two log-probabilities
    ],
)
def test_a_likely_token_that_is_not_among_the_listed_leaves_the_entropy_unknown(read, chosen, top):
    row = read(batch(chat([token(*chosen, top)], finish="length")))
    assert row["surprisal"] == pytest.approx([0.8])
    assert row["entropy"] is None
    assert row["lacks"] == (
        "token 1 has the log-probability -0.8, above the least of the likeliest tokens listed for "
        "it (-2), but is not among them"
    )


def test_a_chosen_token_added_to_the_k_likeliest_is_counted_and_caps_nothing(read):
    # k = 1 with the sampled token added: p = .3 was chosen, .6 is listed.
    added = [token("b", math.log(0.3), [("b", math.log(0.3)), ("a", math.log(0.6))])]
    row = read(batch(chat(added, text="b", finish="length")))
    absent = [token("b", math.log(0.3), [("a", math.log(0.6))])]
    assert row["entropy"] == read(batch(chat(absent, text="b", finish="length")))["entropy"]
    # The tail of .1 can be one token: lower = H(.6, .3, .1).
    expected = -(0.6 * math.log(0.6) + 0.3 * math.log(0.3) + 0.1 * math.log(0.1))
    assert row["entropy_lower"][0] == pytest.approx(expected, abs=1e-4)


def test_special_tokens_that_share_an_empty_text_stay_apart(read):
    content = [token("51", -1.0, [("", -1.5), ("", -1.6), ("51", -1.0)])]
    merged = [token("51", -1.0, [("", -1.5), ("51", -1.0)])]
    apart = read(batch(chat(content, finish="length")))
    assert apart["entropy_upper"] < read(batch(chat(merged, finish="length")))["entropy_upper"]


def test_a_shorter_list_is_taken_as_it_is(read):
    shorter = [token("51", -0.25, TWO[:1]), token("<|im_end|>", -0.01, END)]
    row, whole = read(batch(chat(shorter))), read(batch(chat()))
    assert row["entropy_upper"][0] > whole["entropy_upper"][0]
    assert row["entropy"][1] == whole["entropy"][1]


@pytest.mark.parametrize("content", ["null", []])
def test_an_answer_without_log_probabilities_is_text(read, content):
    row = read(batch(chat(content)))
    assert row["answer"] == "51"
    assert row["surprisal"] is None
    assert row["entropy"] is None
    assert row["stop_token"] == "unknown"
    assert row["lacks"] == "no log-probabilities are given"


def test_log_probabilities_without_likeliest_tokens_give_no_entropy(read):
    row = read(batch(chat([token("51", -0.25)])))
    assert row["surprisal"] == pytest.approx([0.25])
    assert row["entropy"] is None
    assert row["lacks"] == "no top log-probabilities are given"


def test_without_a_vocabulary_one_is_assumed(read):
    row, wide = read(batch(chat()), vocabulary=None), read(batch(chat()), vocabulary=200_000)
    assert row == wide and row["vocabulary"] == 200_000 and row["lacks"] is None


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"temperature": 1, "top_p": 1.0}, "no"),
        ({"temperature": 0}, "no"),
        ({"temperature": 0, "frequency_penalty": 0.5}, "unknown"),
        ({"temperature": 0.7}, "unknown"),
        ({"temperature": 1, "repetition_penalty": 1.3}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_a_temperature_or_penalty_leaves_it_open_whether_probabilities_are_raw(
    read, request_, expected
):
    assert read(batch(chat()) | {"request": {"body": request_}})["processed"] == expected


def test_processing_can_be_stated(read):
    assert read(batch(chat()), processed="yes")["processed"] == "yes"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (batch(chat([token("51", 0.5)])), "token 1 has the log-probability 0.5, above 0"),
        (batch(chat([token("51", math.nan)])), "token 1 has the log-probability NaN"),
        (batch(chat(token_ids=[1])), "it has 1 token ids and 2 log-probabilities"),
        (batch(chat(), "sound"), "duplicate id 'sound'"),
        (batch(chat(), ""), "it has no id"),
        (
            batch(chat([token("51", -0.1, [("51", -0.1), ("a", -0.1)])])),
            "the probabilities listed for token 1 sum to 1.81, above 1",
        ),
        (
            batch(chat([token("51", -0.1) | {"token": 5}])),
            "its log-probabilities are no list of objects with 'token'",
        ),
        (batch(chat([token("51", "x", TWO)])), "one of its log-probabilities is no number"),
        (batch(chat([token("51", [1], TWO)])), "one of its log-probabilities is no number"),
        (
            batch(chat([token("51", -0.1) | {"top_logprobs": [3]}])),
            "its log-probabilities are no list of objects with 'token'",
        ),
        ({"custom_id": "x", "what": 1}, "its format is unknown"),
        (["x"], "it is not a JSON object"),
        (batch({"choices": [{"message": {"content": 5}}]}), "as openai_chat, choices.0.message"),
    ],
)
def test_wrong_rows_are_listed_with_their_place(wrong, row, reason):
    if reason == "it has no id":
        row = {"response": row["response"]}
    (told,) = wrong(row)
    assert told.startswith(f"line 2: {reason}")


def test_a_run_stops_at_wrong_rows_unless_told_otherwise(tmp_path):
    path = write(tmp_path / "a.jsonl", [batch(chat()), {"custom_id": "x", "what": 1}])
    with pytest.raises(InputError, match=r"1 invalid row\(s\): line 2: its format is unknown"):
        read_file(path)


def test_a_chat_completion_alone_has_its_own_id(read):
    assert read(chat() | {"id": "chatcmpl-1"})["example_id"] == "chatcmpl-1"


def test_an_id_can_lie_anywhere(read):
    row = read(batch(chat()) | {"doc": {"ID": "q7"}}, id="doc.ID")
    assert row["example_id"] == "q7"


def test_tokens_written_by_their_ids(read):
    content = [token("token_id:7", -0.1, [("token_id:7", -0.1)]), token("token_id:2", -0.2)]
    assert read(batch(chat(content, finish="length")))["token_ids"] == [7, 2]


def test_a_responses_object(read):
    part = {
        "type": "output_text",
        "text": "51",
        "logprobs": [token("51", -0.25, TWO)],
    }
    body = {
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [part]},
        ],
    }
    row = read(batch(body))
    assert row["answer"] == "51"
    assert row["surprisal"] == pytest.approx([0.25])
    assert row["stop_token"] == "absent"
    assert row["finish_reason"] == "stop"


def test_an_older_completion(read):
    logprobs = {
        "tokens": [" 5", "1"],
        "token_logprobs": [-0.1, -0.2],
        "top_logprobs": [{" 5": -0.1, " 6": -2.5}, {"1": -0.2, "2": -2.0}],
        "text_offset": [0, 2],
    }
    choice = {"index": 0, "text": " 51", "finish_reason": "length", "logprobs": logprobs}
    row = read(batch({"choices": [choice], "model": "m"}))
    assert row["surprisal"] == pytest.approx([0.1, 0.2])
    assert row["stop_token"] == "none"


def test_texts_that_were_merged_leave_a_likelier_token_possible(read):
    def body(second):
        logprobs = {
            "tokens": ["a", "b"],
            "token_logprobs": [-1.2, -1.2],
            "top_logprobs": [{"a": -1.2, "b": -2.0, "c": -4.0}, second],
        }
        return {"choices": [{"text": "ab", "finish_reason": "length", "logprobs": logprobs}]}

    whole = read(batch(body({"b": -1.2, "": -2.0, "c": -4.0})))["entropy_lower"][1]
    merged = read(batch(body({"b": -1.2, "": -4.0})))["entropy_lower"][1]
    assert merged < whole


@given(seed=st.integers(0, 10**6), greedy=st.booleans(), sharpness=st.sampled_from([0.1, 3, 8]))
def test_lists_of_unequal_lengths_bound_each_tokens_own_entropy(seed, greedy, sharpness):
    """A sampled token may be likeliest, listed or not; the entropies are those of scipy."""
    rng, content, entropies, alone = np.random.default_rng(seed), [], [], []
    for _ in range(rng.integers(1, 6)):
        p = np.sort(np.exp(rng.normal(size=60) * sharpness))[::-1]
        p, k = p / p.sum(), rng.integers(1, 21)
        chosen = 0 if greedy else rng.choice(60, p=p)
        logs = np.log(p)
        top = [(f"t{place}", float(logs[place])) for place in range(k)]
        content.append(token(f"t{chosen}", float(logs[chosen]), top))
        entropies.append(shannon(p))
        known = [*logs[:k], *([logs[chosen]] if chosen >= k else [])]
        least = logs[k - 2 if chosen == k - 1 and not greedy else k - 1]  # of the others
        alone.append(entropy_bounds(known, 60, math.exp(least)))
    text = "".join(each["token"] for each in content)
    found = read_row(batch(chat(content, text)), Reading(vocabulary=60, greedy=greedy))
    for t, exact in enumerate(entropies):
        assert found.entropy_lower[t] <= exact <= found.entropy_upper[t]
        if len(content[t]["top_logprobs"]) > 1:
            assert found.entropy[t] == pytest.approx(float(alone[t].middle), abs=1e-12)


@pytest.mark.parametrize("places", [None, 3, 5])
def test_an_answer_has_the_same_bits_alone_and_among_many(monkeypatch, tmp_path, places):
    """Answers of one width and rounding are bounded at once."""
    generator = np.random.default_rng(places or 1)
    monkeypatch.setattr(answers, "CHUNK", 40)
    rows = []
    for number in range(100):
        content = []
        for _ in range(generator.integers(1, 12)):
            proba = np.sort(generator.dirichlet(np.ones(generator.integers(3, 8))))[::-1][:-1]
            logprobs = np.log(proba) if places is None else np.log(proba).round(places)
            top = [(f"t{place}", value) for place, value in enumerate(logprobs.tolist())]
            text, logprob = top[generator.integers(len(top))]
            listed = generator.permutation(len(top))[: generator.integers(1, len(top) + 1)]
            content.append(token(text, logprob, [top[place] for place in sorted(listed)]))
        text = "".join(step["token"] for step in content)
        request = {"temperature": float(generator.integers(2))}
        rows.append(batch(chat(content, text), f"q{number}") | {"request": request})
    frame = read_file(write(tmp_path / "answers.jsonl", rows)).frame
    alone = as_frame([read_row(row, Reading()) for row in rows])
    assert frame.equals(alone, null_equal=True)
    assert frame["entropy"].count() > 10 and frame["lacks"].count() > 10
