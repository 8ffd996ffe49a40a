"""Beam search against Transformers' own and against teacher forcing."""

import numpy as np
import pytest
import torch

from support.tiny import ARCHITECTURES
from trace_workflow.models.beams import search_beams
from tracecal.capture.stop_strings import StopStrings

WIDTH = 5


def search(model, tokenizer, prompts, ends=(1, 2), stop=(), limit=10, width=WIDTH):
    return search_beams(model, prompts, list(ends), StopStrings(tokenizer, stop), limit, width)


def frequent_ends(model, tokenizer, prompts):
    """Tokens that beams really hold, so that hypotheses end at different steps."""
    beams = search(model, tokenizer, prompts, ends=())
    return [beams[0][0].token_ids[2], beams[1][1].token_ids[4], beams[2][0].token_ids[1]]


@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
@pytest.mark.parametrize("limit", [1, 10])
def test_beams_are_those_of_transformers(make_model, tokenizer, prompts, architecture, limit):
    model = make_model(architecture)
    ends = frequent_ends(model, tokenizer, prompts)
    model.generation_config.eos_token_id = ends
    for prompt, beams in zip(
        prompts, search(model, tokenizer, prompts, ends=ends, limit=limit), strict=True
    ):
        ids = torch.tensor([prompt])
        expected = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            num_beams=WIDTH,
            num_return_sequences=WIDTH,
            max_new_tokens=limit,
            return_dict_in_generate=True,
            output_scores=True,
        )
        scores = expected.sequences_scores.numpy()
        np.testing.assert_allclose([beam.normalised for beam in beams], scores, atol=1e-4)
        for beam, sequence in zip(
            beams, expected.sequences[:, len(prompt) :].tolist(), strict=True
        ):
            assert list(beam.token_ids) == sequence[: len(beam.token_ids)]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_log_probabilities_are_those_of_a_teacher_forced_pass(
    make_model, tokenizer, prompts, architecture
):
    model = make_model(architecture)
    ends = frequent_ends(model, tokenizer, prompts)
    lengths = set()
    for prompt, beams in zip(prompts, search(model, tokenizer, prompts, ends=ends), strict=True):
        assert len({beam.token_ids for beam in beams}) == WIDTH
        assert [beam.normalised for beam in beams] == sorted(
            (beam.normalised for beam in beams), reverse=True
        )
        for beam in beams:
            ids = list(beam.token_ids)
            lengths.add(len(ids))
            assert not set(ids[:-1]) & set(ends)
            with torch.no_grad():
                logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
            steps = logits.log_softmax(-1)[torch.arange(len(ids)), ids]
            assert beam.logprob == pytest.approx(steps.sum().item(), abs=1e-4)
    assert len(lengths) > 1, "the end tokens must end hypotheses at several lengths"


def test_the_batch_changes_nothing(make_model, tokenizer, prompts):
    model = make_model()
    ends = frequent_ends(model, tokenizer, prompts)
    together = search(model, tokenizer, prompts, ends=ends)
    alone = [search(model, tokenizer, [prompt], ends=ends)[0] for prompt in prompts]
    for one, two in zip(together, alone, strict=True):
        assert [beam.token_ids for beam in one] == [beam.token_ids for beam in two]
        np.testing.assert_allclose(
            [beam.logprob for beam in one], [beam.logprob for beam in two], atol=1e-4
        )


def test_stop_strings_end_beams_with_distinct_tokens(make_model, tokenizer, prompts):
    model = make_model()
    free = search(model, tokenizer, prompts[:1], ends=())[0]
    stops = StopStrings(tokenizer, ())
    head, whole = (stops.decode(free[0].token_ids[:count]) for count in (3, 10))
    stop = whole[len(head) : len(head) + 2]
    beams = search(model, tokenizer, prompts[:1], ends=(), stop=(stop,))[0]
    assert len({beam.token_ids for beam in beams}) == len(beams)
    ended = [beam for beam in beams if stop[0] in stops.decode(beam.token_ids)]
    assert any(len(beam.token_ids) < 10 for beam in ended)
