"""Greedy decoding: the raw distribution, whatever the batch and the generation config."""

import math
from copy import deepcopy

import numpy as np
import polars as pl
import pytest
import torch

from support.tiny import ARCHITECTURES
from trace_workflow.models import decoding
from trace_workflow.models.audit import audit_traces
from tracecal.capture.batches import NotFiniteError
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.tokens import declared_ends, end_tokens
from tracecal.errors import InputError

ENDS = [1, 2]


def decode(model, tokenizer, prompts, ends=ENDS, stop=(), limit=24):
    return decoding.decode(model, prompts, ends, StopStrings(tokenizer, stop), limit)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_batch_size_and_composition_change_nothing(make_model, tokenizer, prompts, architecture):
    model = make_model(architecture)
    together = decode(model, tokenizer, prompts)
    alone = [decode(model, tokenizer, [prompt])[0] for prompt in prompts]
    backwards = decode(model, tokenizer, prompts[::-1])[::-1]
    for other in (alone, backwards):
        for one, two in zip(together, other, strict=True):
            assert one.token_ids == two.token_ids
            assert one.finish_reason == two.finish_reason
            np.testing.assert_allclose(one.surprisal, two.surprisal, atol=1e-4)
            np.testing.assert_allclose(one.entropy, two.entropy, atol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_tokens_are_those_of_transformers_generate(make_model, tokenizer, prompts, architecture):
    model = make_model(architecture)
    for prompt, answer in zip(prompts, decode(model, tokenizer, prompts), strict=True):
        ids = torch.tensor([prompt])
        expected = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=24
        )[0, len(prompt) :]
        assert answer.token_ids == expected.tolist()


def test_numbers_are_those_of_an_independent_float64_softmax(make_model, tokenizer, prompts):
    model = make_model()
    for prompt, answer in zip(prompts, decode(model, tokenizer, prompts), strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([prompt + answer.token_ids])).logits[0].double().numpy()
        steps = logits[len(prompt) - 1 : -1]
        p = np.exp(steps - steps.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        chosen = p[np.arange(len(p)), answer.token_ids]
        np.testing.assert_allclose(answer.surprisal, -np.log(chosen), atol=1e-4)
        np.testing.assert_allclose(answer.entropy, -(p * np.log(p)).sum(-1), atol=1e-4)


def test_a_generation_config_bends_nothing(make_model, tokenizer, prompts):
    plain = decode(make_model(), tokenizer, prompts)
    model = make_model()
    model.generation_config.update(
        repetition_penalty=1.8,
        temperature=0.3,
        min_length=20,
        do_sample=True,
        no_repeat_ngram_size=2,
    )
    bent = decode(model, tokenizer, prompts)
    assert [one.token_ids for one in bent] == [one.token_ids for one in plain]
    assert [one.entropy for one in bent] == [one.entropy for one in plain]


def test_every_end_token_of_a_list_ends_an_answer_and_is_kept(make_model, tokenizer, prompts):
    model = make_model()
    free = decode(model, tokenizer, prompts, ends=[])
    assert all(len(one.token_ids) == 24 and one.finish_reason == "length" for one in free)
    ends = [free[0].token_ids[3], free[1].token_ids[5]]
    for one, two in zip(decode(model, tokenizer, prompts, ends=ends), free, strict=True):
        stops = [index for index, token in enumerate(two.token_ids) if token in ends]
        expected = two.token_ids[: stops[0] + 1] if stops else two.token_ids
        assert one.token_ids == expected
        assert len(one.surprisal) == len(one.entropy) == len(one.token_ids)
        assert one.finish_reason == ("eos" if stops else "length")


def test_an_answer_that_ends_at_once_has_one_token(make_model, tokenizer, prompts):
    model = make_model()
    first = decode(model, tokenizer, prompts[:1], limit=1)[0].token_ids
    answer = decode(model, tokenizer, prompts[:1], ends=first)[0]
    assert answer.token_ids == first
    assert answer.finish_reason == "eos"


def test_a_stop_string_cuts_at_the_token_in_which_it_begins(make_model, tokenizer, prompts):
    model = make_model()
    free = decode(model, tokenizer, prompts[:1], ends=[])[0]
    stops = StopStrings(tokenizer, ())
    text, head = stops.decode(free.token_ids), stops.decode(free.token_ids[:6])
    stop = text[len(head) : len(head) + 4]
    assert text.index(stop) == len(head), "the fixture's answer must not repeat the stop string"
    answer = decode(model, tokenizer, prompts[:1], ends=[], stop=(stop,))[0]
    assert answer.finish_reason == "stop"
    assert answer.token_ids == free.token_ids[: len(answer.token_ids)]
    assert stops.decode(answer.token_ids[:-1]) == head
    assert len(answer.surprisal) == len(answer.entropy) == len(answer.token_ids)


def test_a_stop_string_that_comes_first_leaves_one_token(make_model, tokenizer, prompts):
    model = make_model()
    free = decode(model, tokenizer, prompts[:1], ends=[])[0]
    stop = StopStrings(tokenizer, ()).decode(free.token_ids)[0]
    answer = decode(model, tokenizer, prompts[:1], ends=[], stop=(stop,))[0]
    assert (len(answer.token_ids), answer.finish_reason) == (1, "stop")


def test_nan_logits_stop_the_run(make_model, tokenizer, prompts):
    model = make_model()
    torch.nn.init.constant_(model.lm_head.weight, math.nan)
    with pytest.raises(NotFiniteError, match="token 1 of its answer"):
        decode(model, tokenizer, prompts)


def test_every_token_that_is_declared_as_an_end_ends_an_answer(make_model, tokenizer):
    model, own = make_model(), tokenizer.eos_token_id
    model.generation_config.eos_token_id, model.config.eos_token_id = [1, 3], 4
    assert end_tokens(model, tokenizer) == sorted({1, 3, 4, own})
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    assert end_tokens(model, tokenizer) == [own]


@pytest.mark.parametrize("behind", ["{}", " {}\\n", "{}trailing"])
def test_what_the_chat_template_writes_behind_an_answer_ends_one(make_model, tokenizer, behind):
    """As where the tokenizer names the end of a text alone, and a turn ends in another token."""
    model, turn_end = make_model(), tokenizer.convert_tokens_to_ids("<stop>")
    model.generation_config.eos_token_id = model.config.eos_token_id = 1
    tokenizer = deepcopy(tokenizer)
    tokenizer.chat_template = (
        "{% for m in messages %}<pad>{{ m.content }}" + behind.format("<stop>") + "{% endfor %}"
    )
    declared = declared_ends(model.generation_config, model.config, tokenizer)
    assert declared[turn_end] == ["chat template"]
    assert turn_end in end_tokens(model, tokenizer)
    for template in ("{{ messages[5].content }}", "{{ messages[0].content }}", None):
        tokenizer.chat_template = template
        assert turn_end not in end_tokens(model, tokenizer)


def trace_frame(prompts, answers):
    return pl.DataFrame(
        {
            "example_id": [f"e{index}" for index in range(len(prompts))],
            "prompt_token_ids": prompts,
            "token_ids": [one.token_ids for one in answers],
            "surprisal": [one.surprisal for one in answers],
            "entropy": [one.entropy for one in answers],
        }
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_audit_gives_the_trace_back(make_model, tokenizer, prompts, architecture):
    model = make_model(architecture)
    traces = trace_frame(prompts, decode(model, tokenizer, prompts))
    report = audit_traces(model, traces, tolerance=1e-4)
    assert report["answers"] == len(prompts)
    assert report["tokens"] == traces["token_ids"].list.len().sum()
    assert 0 < report["largest_entropy_deviation"] <= 1e-4


@pytest.mark.parametrize("column", ["surprisal", "entropy", "token_ids"])
def test_the_audit_stops_at_a_trace_that_is_not_the_models(make_model, tokenizer, prompts, column):
    model = make_model()
    answers = decode(model, tokenizer, prompts)
    values = getattr(answers[3], column)
    values[1] = 5 if column == "token_ids" and values[1] != 5 else values[1] + 1
    with pytest.raises(InputError, match="'e3' at token 2"):
        audit_traces(model, trace_frame(prompts, answers), tolerance=1e-3)
