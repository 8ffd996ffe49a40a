"""Traces of one's own generate(): the raw distribution's, whatever bends the choice."""

import pytest
import torch

from trace_workflow.models.decoding import decode
from tracecal.answers.record import Record, as_frame
from tracecal.capture.attach import Attached
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.teacher_forcing import replay_answers
from tracecal.errors import InputError


def generate(model, prompts, **settings):
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(one)) + one for one in prompts])
    mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in prompts])
    with Attached(model) as attached:
        output = model.generate(
            input_ids=ids, attention_mask=mask, **({"max_new_tokens": 10} | settings)
        )
    return attached.answers(output)


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "qwen3"])
def test_greedy_generation_has_the_decoders_traces(make_model, tokenizer, prompts, architecture):
    model = make_model(architecture)
    expected = decode(model, prompts, [1, 2], StopStrings(tokenizer, ()), 10)
    found = generate(model, prompts, do_sample=False)
    assert [one.token_ids for one in found] == [one.token_ids for one in expected]
    assert [one.finish_reason for one in found] == [one.finish_reason for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.surprisal == pytest.approx(other.surprisal, abs=1e-4)
        assert one.entropy == pytest.approx(other.entropy, abs=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"do_sample": False, "repetition_penalty": 1.5},
        {"do_sample": True, "temperature": 0.5, "top_k": 5},
        {"do_sample": False, "return_dict_in_generate": True},
    ],
)
def test_neither_penalties_nor_temperatures_bend_a_trace(make_model, tokenizer, prompts, settings):
    model = make_model()
    torch.manual_seed(0)
    found = generate(model, prompts, **settings)
    records = [
        Record(f"a{place}", prompt_token_ids=prompt, token_ids=answer.token_ids)
        for place, (prompt, answer) in enumerate(zip(prompts, found, strict=True))
    ]
    exact = replay_answers(model, tokenizer, as_frame(records), 8)
    for answer, row in zip(found, exact.iter_rows(named=True), strict=True):
        assert answer.surprisal == pytest.approx(row["surprisal"], abs=1e-4)
        assert answer.entropy == pytest.approx(row["entropy"], abs=1e-4)


def test_the_model_is_left_as_it_was(make_model, prompts):
    model = make_model()
    generate(model, prompts, do_sample=False)
    assert not model._forward_hooks


def test_beam_search_is_refused(make_model, prompts):
    with pytest.raises(InputError, match="beam search and assisted generation"):
        generate(make_model(), prompts, num_beams=3, do_sample=False)
