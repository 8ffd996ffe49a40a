"""Sampling: the distribution is the model's, and a draw depends on what is drawn alone."""

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import chisquare

from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.decoding import decode
from trace_workflow.models.sampling import sample_task
from tracecal.capture.draws import Draws, inverse_cdf, uniform
from tracecal.capture.stop_strings import StopStrings

ASKING = PromptSettings(max_new_tokens=8)


def sample(model, tokenizer, prompts, batch_size=64, answers=3, temperature=1.0, seed=7):
    rows = [
        {"example_id": f"e{index}", "prompt_token_ids": ids} for index, ids in enumerate(prompts)
    ]
    return sample_task(model, rows, tokenizer, ASKING, batch_size, answers, temperature, seed)


def drawn(rows):
    return {(row["example_id"], row["sample"]): row["token_ids"] for row in rows}


def test_the_batch_changes_nothing(make_model, tokenizer, prompts):
    model = make_model("qwen3")
    together = sample(model, tokenizer, prompts)
    assert drawn(sample(model, tokenizer, prompts, batch_size=1)) == drawn(together)
    assert drawn(sample(model, tokenizer, prompts[::-1][:2], batch_size=3)) != {}
    alone = sample(model, tokenizer, prompts[:1])
    assert drawn(alone).items() <= drawn(together).items()
    fewer = sample(model, tokenizer, prompts, answers=2)
    assert drawn(fewer).items() <= drawn(together).items(), "more samples keep the first ones"


def test_the_seed_decides(make_model, tokenizer, prompts):
    model = make_model()
    first = sample(model, tokenizer, prompts)
    assert sample(model, tokenizer, prompts) == first
    assert drawn(sample(model, tokenizer, prompts, seed=8)) != drawn(first)
    torch.manual_seed(0)
    torch.rand(3)
    assert sample(model, tokenizer, prompts) == first, "no generator's state matters"
    assert len({tuple(ids) for ids in drawn(first).values()}) > len(prompts)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_surprisals_are_those_of_a_teacher_forced_pass_at_temperature_1(
    make_model, tokenizer, prompts, temperature
):
    model = make_model("gemma2")
    for row in sample(model, tokenizer, prompts, temperature=temperature):
        prompt, ids = prompts[int(row["example_id"][1:])], row["token_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        expected = -logits.log_softmax(-1)[torch.arange(len(ids)), ids]
        np.testing.assert_allclose(row["surprisal"], expected.numpy(), atol=1e-4)
        assert row["text"] == tokenizer.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_first_tokens_follow_the_models_distribution(make_model, tokenizer, prompts, temperature):
    model, prompt = make_model(), prompts[0]
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1] / temperature
    expected = logits.double().softmax(-1).numpy()
    count = 4000
    keys = [f"s\x1f{index}" for index in range(count)]
    stops = StopStrings(tokenizer, ())
    answers = decode(model, [prompt], [1, 2], stops, 1, Draws(keys, temperature), copies=count)
    observed = np.bincount([a.token_ids[0] for a in answers], minlength=len(expected))
    common = expected * count >= 5
    found = [*observed[common], observed[~common].sum()]
    wanted = [*expected[common] * count, expected[~common].sum() * count]
    assert common.sum() > 5
    assert chisquare(found, wanted).pvalue > 0.001


def test_copies_are_the_prompt_asked_again(make_model, tokenizer, prompts):
    model, stops = make_model(), StopStrings(tokenizer, ())

    def likeliest(logits, rows, lengths):
        return logits.argmax(-1)

    copied = decode(model, prompts, [1, 2], stops, 8, likeliest, copies=2)
    once = decode(model, prompts, [1, 2], stops, 8)
    assert [a.token_ids for a in copied] == [a.token_ids for a in once for _ in range(2)]


def test_the_inverse_distribution_function():
    logits = torch.tensor([[0.2, 0.3, 0.5, 0.0]]).log().repeat(5, 1)
    chosen = inverse_cdf(logits, [0.0, 0.19999, 0.2001, 0.50001, 1 - 2**-53])
    assert chosen.tolist() == [0, 0, 1, 2, 2], "what has probability 0 is never chosen"
    leading = torch.tensor([[0.0, 1.0]]).log()
    assert inverse_cdf(leading, [0.0]).tolist() == [1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("vocabulary", [1, 5, 255, 256, 257, 5_000])
def test_the_inverse_is_that_of_all_weights_summed_in_float64(vocabulary, dtype):
    logits = 5 * torch.randn(64, vocabulary, generator=torch.Generator().manual_seed(vocabulary))
    logits = logits.to(dtype)
    uniforms = np.random.default_rng(vocabulary).random(64)
    cumulative = np.cumsum(softmax(logits.double().numpy(), axis=1), axis=1)
    expected = [
        np.searchsorted(row / row[-1], u, "right")
        for row, u in zip(cumulative, uniforms, strict=True)
    ]
    assert inverse_cdf(logits, uniforms.tolist()).tolist() == expected


def test_a_uniform_near_one_takes_the_last_token_that_has_a_weight():
    logits = torch.full((300, 600), -torch.inf)
    lasts = torch.arange(300) * 2
    logits[:, 0] = logits[torch.arange(300), lasts] = 0.0
    assert inverse_cdf(logits, [1 - 2**-53] * 300).tolist() == lasts.tolist()


def test_uniforms_are_uniform():
    values = np.array([uniform(f"k\x1f{index}") for index in range(5000)])
    assert values.min() >= 0 and values.max() < 1
    assert chisquare(np.histogram(values, bins=20, range=(0, 1))[0]).pvalue > 0.001
