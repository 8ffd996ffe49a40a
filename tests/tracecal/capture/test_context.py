"""Rows in a context: what is shared, spliced or padded changes nothing but rounding."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import DynamicCache

from support.tiny import ARCHITECTURES
from trace_workflow.models import decoding
from trace_workflow.models.decoding import decode
from tracecal.capture import context
from tracecal.capture.context import Context, in_place, padded_context, shared_prefix
from tracecal.capture.draws import Draws
from tracecal.capture.stop_strings import StopStrings

# The prompts are the same objects in every example.
reused = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
SHARED = list(range(10, 31))


def assert_same(answers, others):
    for one, two in zip(answers, others, strict=True):
        assert (one.token_ids, one.finish_reason) == (two.token_ids, two.finish_reason)
        np.testing.assert_allclose(one.surprisal, two.surprisal, atol=1e-4)
        np.testing.assert_allclose(one.entropy, two.entropy, atol=1e-4)


def greedily(model, prompts, tokenizer, **settings):
    return decode(model, prompts, [1, 2, 40], StopStrings(tokenizer, ()), 12, **settings)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("slots", [1, 2, 3, None])
def test_what_prompts_share_is_read_once_and_changes_nothing(
    make_model, tokenizer, architecture, slots
):
    """Sliding windows of 8 tokens, shared beginnings of 21: no padding comes between them."""
    model = make_model(architecture)
    prompts = [SHARED + ends for ends in ([5], [6, 7, 8, 9, 50, 51], [5, 5], [60] * 30, [61, 5])]
    with torch.inference_mode():
        assert shared_prefix(model, prompts).width == len(SHARED)
    alone = [greedily(model, [prompt], tokenizer)[0] for prompt in prompts]
    assert_same(greedily(model, prompts, tokenizer, slots=slots), alone)


@reused
@given(data=st.data())
@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
def test_neither_order_nor_slots_nor_company_change_an_answer(
    make_model, tokenizer, architecture, data
):
    model = make_model(architecture)
    tail = st.lists(st.integers(3, 200), min_size=1, max_size=20)
    known = data.draw(st.sampled_from([[], SHARED]))
    prompts = [known + ids for ids in data.draw(st.lists(tail, min_size=1, max_size=9))]
    order = data.draw(st.permutations(range(len(prompts))))
    slots = data.draw(st.integers(1, 10))
    alone = [greedily(model, [prompts[i]], tokenizer)[0] for i in order]
    assert_same(greedily(model, [prompts[i] for i in order], tokenizer, slots=slots), alone)


@pytest.mark.parametrize("slots", [2, 5, 7, 100])
def test_samples_do_not_depend_on_who_waits(make_model, tokenizer, prompts, slots):
    model, keys = make_model(), [f"k{i}" for i in range(2 * len(prompts))]

    def draw(slots):
        stops = StopStrings(tokenizer, ())
        return decode(model, prompts, [1, 40], stops, 12, Draws(keys, 1.0), 2, slots)

    assert_same(draw(slots), draw(None))


@pytest.mark.parametrize("every", [2, 5, 50])
def test_looking_less_often_changes_nothing(make_model, tokenizer, prompts, monkeypatch, every):
    """As on a GPU, where each look is a wait: what is decoded beyond an end is dropped."""
    model = make_model()
    expected = greedily(model, prompts, tokenizer, slots=3)
    monkeypatch.setitem(decoding.LOOK_EVERY, "cpu", every)
    assert_same(greedily(model, prompts, tokenizer, slots=3), expected)


def test_a_model_whose_cache_cannot_be_spliced_decodes_batch_by_batch(
    make_model, tokenizer, prompts, monkeypatch
):
    """Transformers' own cache stands in for one with recurrent states."""
    model = make_model()
    shared = [SHARED + ids for ids in prompts]
    expected = greedily(model, shared, tokenizer, slots=2)
    monkeypatch.setattr(context, "new_cache", lambda model: DynamicCache(config=model.config))
    assert shared_prefix(model, shared) is None
    assert_same(greedily(model, shared, tokenizer, slots=2), expected)


def test_forward_passes_are_as_few_as_tokens_allow(make_model, tokenizer, prompts):
    """Prompts are read `slots` at a time; steps that waiting prompts fill."""
    model, shapes = make_model(), []
    model.register_forward_pre_hook(
        lambda module, args, given: shapes.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    many = prompts * 6
    answers = greedily(model, many, tokenizer, slots=4)
    reads = [shape for shape in shapes if shape[1] > 1]
    steps = [rows for rows, new in shapes if new == 1]
    needed = sum(len(answer.token_ids) - 1 for answer in answers)
    assert len(reads) <= -(-len(many) // 4)
    assert max(steps) <= 4
    assert needed <= sum(steps) <= 1.15 * needed


@torch.inference_mode()
def test_a_context_keeps_its_buffer_while_there_is_room(make_model):
    read, ids = padded_context(make_model(), [[5, 6, 7], [8, 9]])
    assert isinstance(read, Context)
    read.read(ids)
    before = read.cache.layers[0].room[0]
    for _ in range(context.ROOM):
        read.read(torch.tensor([[5], [6]]))
    assert read.cache.layers[0].room[0] is before
    read.read(torch.tensor([[5], [6]]))
    assert read.cache.layers[0].room[0] is not before


@given(st.sets(st.integers(0, 12)), st.integers(0, 12))
def test_a_place_that_need_not_change_does_not(places, joining):
    kept = sorted(places)
    order = in_place(kept, joining)
    assert sorted(order) == list(range(len(kept) + joining))
    stay = [number for number, place in enumerate(kept) if place < len(order)]
    assert all(order[kept[number]] == number for number in stay)
