"""Answers behind reasoning, as servers write them: of which tokens the trace is."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.arrow_files import write_arrow
from support.log_rows import chat, token
from tracecal.answers.answers import read_file
from tracecal.answers.formats.layouts import FORMATS
from tracecal.answers.imported_traces import kind_metadata
from tracecal.answers.raw_answer import RawAnswer, split_reasoning, with_traced_tokens
from tracecal.answers.reading import Reading
from tracecal.answers.row import as_frame, read_row
from tracecal.answers.task_answers import NOT_REPLAYABLE
from tracecal.answers.tokens import Step
from tracecal.errors import InputError, WrongRow
from tracecal.io.traces import TRACES

THOUGHT = ["50", " +", " 1", "."]
BETWEEN = ["\n", "</think>", "\n\n"]
ANSWER = ["5", "1", "<|im_end|>"]
ALL = ["<think>", "\n", *THOUGHT, *BETWEEN, *ANSWER]
TEXT = "50 + 1."
WHOLE = "".join(ALL[:-1])


def tokens(texts):
    """Chosen tokens; each text has a log-probability of its own."""
    values = [-0.01 * (1 + place) for place in range(len(texts))]
    return [token(text, value, [(text, value)]) for text, value in zip(texts, values, strict=True)]


def surprisals(row):
    return [round(100 * value) for value in row.surprisal]


def places(texts=ALL, of=ANSWER):
    """What `surprisals` gives for the last tokens of a text."""
    return list(range(len(texts) - len(of) + 1, len(texts) + 1))


def read(body, **reading):
    return read_row({"id": "q", "response": body}, Reading(vocabulary=1000, **reading))


def beside(name="reasoning_content", texts=ALL, thought=TEXT):
    """As vLLM and SGLang write it with a reasoning parser: the tokens of both in one list."""
    return chat(tokens(texts), message={"content": "51", name: thought})


def deepseek():
    body = beside(texts=ANSWER)
    body["choices"][0]["logprobs"] = {
        "reasoning_content": tokens(ALL)[2:6],
        "content": tokens(ALL)[-3:],
    }
    return body


def ollama():
    message = {"content": "51", "thinking": TEXT}
    return {"model": "m", "message": message, "done": True, "logprobs": tokens(ALL)}


def sglang():
    triples = [[-0.01 * (1 + place), place, text] for place, text in enumerate(ALL)]
    tops = [[triple] for triple in triples]
    meta = {"output_token_logprobs": triples, "output_top_logprobs": tops}
    meta |= {"finish_reason": {"type": "stop"}}
    return {"text": WHOLE, "output_ids": list(range(len(ALL))), "meta_info": meta}


def inspect():
    content = [{"type": "reasoning", "reasoning": TEXT}, {"type": "text", "text": "51"}]
    choice = {"message": {"content": content}, "logprobs": {"content": tokens(ALL)}}
    return {"output": {"model": "m", "choices": [choice]}}


def columns(**more):
    surprisal = [0.01 * (1 + place) for place in range(len(ALL))]
    return {"answer": WHOLE, "tokens": ALL, "surprisal": surprisal, "entropy": surprisal} | more


HARMONY = [*THOUGHT, "<|end|>", "<|channel|>", "final", "<|message|>", *ANSWER]
SHAPES = {
    "beside": (beside(), ALL),
    "beside, by its other name": (beside("reasoning"), ALL),
    "the template opened it": (beside(texts=ALL[2:]), ALL[2:]),
    "other marks": (beside(texts=HARMONY), HARMONY),
    "no marks among the tokens": (beside(texts=[*THOUGHT, *ANSWER]), [*THOUGHT, *ANSWER]),
    "in the text": (chat(tokens(ALL), WHOLE), ALL),
    "in the text, the template opened it": (chat(tokens(ALL[2:]), "".join(ALL[2:-1])), ALL[2:]),
    "in the tokens alone": (chat(tokens(ALL), "51"), ALL),
    "deepseek": (deepseek(), ALL),
    "ollama": (ollama(), ALL),
    "sglang": (sglang(), ALL),
    "inspect": (inspect(), ALL),
    "columns": (columns(), ALL),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_trace_is_of_the_answer(shape):
    body, texts = SHAPES[shape]
    row = read(body)
    assert (row.answer, row.reasoning) == ("51", "apart")
    assert list(row.tokens) == ANSWER
    assert surprisals(row) == places(texts)
    assert len(row.entropy) == 3
    assert row.stop_token == "included"
    assert row.token_ids is None or list(row.token_ids) == [9, 10, 11]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_trace_may_be_of_the_reasoning_or_of_both(shape):
    body, texts = SHAPES[shape]
    given = THOUGHT + ANSWER if shape == "deepseek" else texts
    both, alone = read(body, reasoning="within"), read(body, reasoning="alone")
    assert (both.reasoning, list(both.tokens)) == ("within", given)
    assert (alone.reasoning, list(alone.tokens)) == ("alone", given[:-3])
    assert surprisals(both) == surprisals(alone) + surprisals(read(body))
    assert alone.answer == "51" and alone.stop_token == "none"


def responses(**more):
    part = {"type": "output_text", "text": "51", "logprobs": tokens(["51"])}
    return {
        "model": "m",
        "status": "completed",
        "output": [{"type": "message", "content": [part]}],
    } | more


@pytest.mark.parametrize(
    "body",
    [
        responses(output=[{"type": "reasoning", "summary": []}, *responses()["output"]]),
        responses(usage={"output_tokens_details": {"reasoning_tokens": 9}}),
        chat(tokens(["51"])) | {"usage": {"completion_tokens_details": {"reasoning_tokens": 9}}},
        beside(texts=["51"]),
        beside(texts=["51"], thought="51, or 5"),
    ],
)
def test_reasoning_that_is_not_listed_is_known_of(body):
    row = read(body)
    assert (row.reasoning, surprisals(row), list(row.tokens)) == ("apart", [1], ["51"])
    with pytest.raises(WrongRow, match="of its reasoning are not listed"):
        read(body, reasoning="alone")


@pytest.mark.parametrize("text", ["51", "a < b </b>", "say <think> and </think>"])
def test_an_answer_without_reasoning_has_none(text):
    row = read(chat(tokens([text, "<|im_end|>"]), text))
    assert (row.reasoning, row.answer, len(row.surprisal)) == ("none", text, 2)
    with pytest.raises(WrongRow, match="holds no reasoning"):
        read(chat(tokens([text, "<|im_end|>"]), text), reasoning="alone")


@pytest.mark.parametrize(
    "body",
    [
        chat(tokens(ALL[:5]), "".join(ALL[:5]), finish="length"),
        chat(tokens(ALL[:8]), "".join(ALL[:8]), finish="length"),
        chat(tokens(ALL[:5]), message={"content": None, "reasoning_content": TEXT}),
        chat(tokens(ALL), message={"content": "", "reasoning": TEXT}),
    ],
)
def test_reasoning_without_an_answer_is_none(body):
    is_cut = body["choices"][0]["finish_reason"] == "length"
    row = read(body)
    assert row.no_answer == row.lacks == ("cut while reasoning" if is_cut else "empty")
    assert row.surprisal is row.tokens is row.partial is None
    assert read(body, reasoning="within").surprisal


@pytest.mark.parametrize(
    "texts",
    [
        [f"token_id:{place}" for place in range(9)],
        ["<think>", *THOUGHT, "</think>", "52"],
        [*THOUGHT, "52"],
    ],
)
def test_tokens_that_cannot_be_told_apart_are_refused(texts):
    with pytest.raises(WrongRow, match="so they cannot be told apart"):
        read(beside(texts=texts))


def test_sglangs_tokens_without_texts_cannot_be_told_apart():
    body = sglang()
    body["meta_info"]["output_token_logprobs"] = [
        [value, id_, None] for value, id_, _ in body["meta_info"]["output_token_logprobs"]
    ]
    with pytest.raises(WrongRow, match="give the texts of all tokens"):
        read(body)


@pytest.mark.parametrize("answer", ["t", "i", "k>", "end"])
def test_an_answer_that_the_marks_spell_too_is_found_behind_them(answer):
    for texts in (ALL[:-3], [*THOUGHT, "<|end|>", "<|think|>"]):
        row = read(
            chat(
                tokens([*texts, answer, "<|im_end|>"]),
                message={"content": answer, "reasoning_content": TEXT},
            )
        )
        assert list(row.tokens) == [answer, "<|im_end|>"]


@given(st.text("a5 <>/\n", max_size=12), st.text("a5 <>/é", min_size=1, max_size=8), st.data())
def test_the_first_token_kept_spells_the_answers_first_character(thought, answer, data):
    answer = answer.strip() or "5"
    whole = f"<think>{thought}</think>\n\n{answer}"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1))))
    texts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    for raw in (RawAnswer(answer=whole), RawAnswer(answer=answer, thoughts=thought)):
        steps = [Step(text, None, -0.1) for text in texts]
        found = with_traced_tokens(RawAnswer(**vars(raw) | {"steps": steps}), "apart")
        left = len(texts) - len(found.steps)
        before, first = "".join(texts[:left]), texts[left]
        assert len(before) <= whole.index("</think>") + len("</think>\n\n") < len(before + first)
        assert found.answer == answer


def test_parted_text():
    assert split_reasoning("<think>a</think>b</think>c") == ("a", "b</think>c")
    assert split_reasoning("[THINK]a[/THINK]b") == ("a", "b")
    assert split_reasoning("<think>a") == ("a", "")
    assert split_reasoning("b") is None


def test_a_text_without_numbers_is_left_for_a_replay_that_reads_all_of_it():
    text, other = read({"answer": WHOLE, "prompt": "?"}), read({"answer": "51", "prompt": "?"})
    assert (text.answer, text.reasoning) == (WHOLE, "within")
    assert kind_metadata(as_frame([text, other]))["reasoning"] == "within"
    stated = chat("null", message={"content": "51", "reasoning": TEXT}, token_ids=[5, 6])
    given = read(stated | {"prompt_token_ids": [1]})
    whys = as_frame([text, other, given]).select(why=NOT_REPLAYABLE)["why"]
    assert whys.to_list()[:2] == [None, None]
    assert "reasoning precedes it" in whys[2]


def test_traces_of_answers_with_and_without_reasoning_are_not_mixed():
    some = [read(beside()), read(chat())]
    with pytest.raises(InputError, match="several kinds .reasoning: apart, none"):
        kind_metadata(as_frame(some))
    assert kind_metadata(as_frame(some[:1]))["reasoning"] == "apart"
    assert "reasoning" not in kind_metadata(as_frame(some[1:]))


@pytest.mark.parametrize("stated", [{}, {"reasoning": "within"}])
def test_traces_of_a_run_stay_as_they_are(tmp_path, stated):
    row = read(columns(), reasoning="within")
    told = {name: getattr(row, name) for name in ("example_id", "answer", "surprisal", "entropy")}
    told |= {"prompt": "?", "prompt_token_ids": [1], "finish_reason": "eos", "tokens": ALL}
    told |= {"token_ids": list(range(len(ALL)))}
    write_arrow([told], TRACES, {"schema_version": "1"} | stated, tmp_path / "traces.arrow")
    found = read_file(tmp_path / "traces.arrow").frame.row(0, named=True)
    assert found["reasoning"] == stated.get("reasoning", "none")
    assert (found["answer"], found["tokens"]) == (WHOLE, ALL)


ANSWERS_BEHIND = {
    "tags of any name": "<my_reasoning>The capital?</my_reasoning>Oslo.",
    "tags in capitals": "[THINKING]The capital?[/THINKING] Oslo.",
    "the template opened a tag": "The capital?</thought>\n\nOslo.",
    "Kimi": "◁think▷The capital?◁/think▷Oslo.",
    "gpt-oss": "<|channel|>analysis<|message|>The capital?<|end|><|start|>assistant<|channel|>final"
    "<|message|>Oslo.<|return|>",
    "gpt-oss, also a comment": "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>"
    "commentary<|message|>So<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>Oslo.",
    "gpt-oss without marks": "analysisThe capital?assistantfinalOslo.",
    "Gemma": "<|channel>thought\nThe capital?<channel|>Oslo.",
    "Cohere": "<|START_THINKING|>Hm<|END_THINKING|><|START_RESPONSE|>Oslo.<|END_RESPONSE|>",
    "Apertus": "<|inner_prefix|>Hm<|inner_suffix|>Oslo.",
    "Granite": "Here is my thought process: Hm\n\nHere is my response: Oslo.",
}


@pytest.mark.parametrize("name", ANSWERS_BEHIND)
@pytest.mark.parametrize("place", ["in the text", "in the tokens alone"])
def test_marks_of_families(name, place):
    whole = ANSWERS_BEHIND[name]
    begin = whole.index("Oslo.")
    pieces = [*re.findall(r"<[^>]+>|\w+|.", whole[:begin], re.S), "Oslo", "."]
    end = whole[begin + 5 :] or "<|im_end|>"
    row = read(chat(tokens([*pieces, end]), whole if place == "in the text" else "Oslo."))
    assert (row.answer, row.reasoning, list(row.tokens)) == ("Oslo.", "apart", ["Oslo", ".", end])
    assert row.stop_token == "included"


@pytest.mark.parametrize(
    "text",
    [
        "<b>Oslo</b> is the capital.",
        "analysis of the question: Oslo.",
        "I think </b> Oslo.",
        "[Reason] Oslo.",
        "Here is my answer: Oslo.",
    ],
)
def test_texts_without_reasoning(text):
    assert split_reasoning(text) is None


@pytest.mark.parametrize(
    "pieces, text, kept",
    [
        (["Hm", ".", " ", "Oslo", ".", "<end>"], "Oslo.", ["Oslo", ".", "<end>"]),
        (["So", ": ", "Oslo", "."], "Oslo.", ["Oslo", "."]),
        (["<s>", "Oslo", "."], "Oslo.", ["<s>", "Oslo", "."]),
        (["Oslo", " ."], "Oslo.", ["Oslo", " ."]),
        (["▁Oslo", "▁is"], "Oslo is", ["▁Oslo", "▁is"]),
        (["Os", "lo", "\n", "Q"], "Oslo", ["Os", "lo", "\n", "Q"]),
        (["Oslo", "."], "Bergen.", None),
        (["Oslo", " is"], "Oslo is the capital of Norway.", None),
        (["He", "llo", " Oslo", ".", " Bye", "."], "Oslo.", None),
        (["51", "<end>"], "5", None),
        (["Os", "lonely", "."], "Oslo", None),
        (["Os", "lo\n", "Q:"], "Oslo", ["Os", "lo\n", "Q:"]),
    ],
)
def test_the_answers_own_tokens_are_found_or_there_is_no_trace(pieces, text, kept):
    row = read(chat(tokens(pieces), text))
    if kept is None:
        assert row.lacks == "the tokens spell another text"
        assert row.surprisal is row.entropy is row.tokens is row.partial is None
    else:
        assert list(row.tokens) == kept and row.lacks is None
        assert surprisals(row) == places(pieces, kept)


def test_a_stop_string_may_end_within_the_last_token_of_an_answer():
    answer = chat(tokens(["Os", "lo."]), "Oslo", stop_reason=".")
    assert read(answer).lacks is None and read(answer).stop_token == "included"


def test_characters_that_tokens_split_are_spelled_by_their_bytes():
    text = "Größe: 5 €"
    content = text.encode()
    cuts = [0, 3, 4, 6, 11, 12, 13, len(content)]
    pieces = [content[begin:end] for begin, end in pairwise(cuts)]
    listed = [
        {"token": part.decode(errors="replace"), "bytes": list(part), "logprob": -0.1}
        for part in pieces
    ]
    row = read(chat([*listed, {"token": "", "bytes": [], "logprob": -0.2}], text))
    assert "".join(row.tokens) == text and len(row.tokens) == len(pieces) + 1
    assert row.stop_token == "included" and len(row.surprisal) == len(row.tokens)


USAGES = {
    "openai_completions": {"choices": [{"text": "51"}], "usage": {"reasoning_tokens": 5}},
    "gemini": {
        "candidates": [{"content": {"parts": [{"text": "51"}]}}],
        "usageMetadata": {"thoughtsTokenCount": 5},
    },
    "langchain": {
        "content": "51",
        "response_metadata": {"model_name": "m"},
        "usage_metadata": {"output_token_details": {"reasoning": 5}},
    },
    "inspect": {
        "epoch": 1,
        "output": {"choices": [{"message": {"content": "51"}}], "usage": {"reasoning_tokens": 5}},
    },
    "outputs": {"outputs": [{"text": "51"}], "usage": {"reasoning_tokens": 5}},
    "cohere": {
        "message": {"content": "51"},
        "finish_reason": "COMPLETE",
        "usage": {"tokens": {"reasoning_tokens": 5}},
    },
    "sglang": {"text": "51", "meta_info": {"reasoning_tokens": 5}},
}


@pytest.mark.parametrize("name", USAGES)
def test_reasoning_that_only_a_count_betrays(name):
    assert FORMATS.layout_of(USAGES[name]).name == name
    assert read(USAGES[name]).reasoning == "apart"
    plain = json.loads(json.dumps(USAGES[name]).replace(": 5}", ": 0}"))
    assert read(plain).reasoning == "none"
