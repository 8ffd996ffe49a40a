"""The pass over a step's logits, against float64 and by its properties."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tracecal.capture.capture import BLOCK, _argmax, _read, capture


def reference(logits, tokens):
    log_probs = logits.double().log_softmax(-1)
    entropy = torch.special.entr(log_probs.exp()).sum(-1)
    return -log_probs.gather(-1, tokens[:, None]).squeeze(-1), entropy


def test_a_hand_computed_distribution():
    logits = torch.tensor([[math.log(0.5), math.log(0.25), math.log(0.25), -math.inf]])
    tokens, surprisal, entropy = capture(logits)
    assert tokens.tolist() == [0]
    assert surprisal.item() == pytest.approx(math.log(2))
    assert entropy.item() == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(4))
    assert capture(logits, torch.tensor([1]))[1].item() == pytest.approx(math.log(4))
    assert capture(logits, torch.tensor([3]))[1].item() == math.inf


@pytest.mark.parametrize("vocabulary", [1_500, 151_936, 262_144])
@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 3.0, 10.0])
def test_two_in_a_hundred_thousand_nats_of_float64(vocabulary, scale):
    logits = torch.randn(3, vocabulary, generator=torch.Generator().manual_seed(1)) * scale + 30
    tokens, surprisal, entropy = capture(logits)
    assert tokens.tolist() == logits.argmax(-1).tolist()
    expected = reference(logits, tokens)
    torch.testing.assert_close(surprisal.double(), expected[0], atol=2e-5, rtol=0)
    torch.testing.assert_close(entropy.double(), expected[1], atol=2e-5, rtol=0)
    unlikely = logits.argmin(-1)
    read = capture(logits, unlikely)[1].double()
    torch.testing.assert_close(read, reference(logits, unlikely)[0], atol=2e-5, rtol=0)


@given(
    values=arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(1, 9)),
        elements=st.floats(-200, 200, width=32) | st.just(-math.inf),
    )
)
def test_small_distributions_with_tokens_that_cannot_come(values):
    values[:, 0] = np.where(np.isinf(values).all(1), 0, values[:, 0])
    logits = torch.from_numpy(values)
    tokens, surprisal, entropy = capture(logits)
    expected = reference(logits, tokens)
    torch.testing.assert_close(surprisal.double(), expected[0], atol=2e-5, rtol=0)
    torch.testing.assert_close(entropy.double(), expected[1], atol=2e-5, rtol=0)
    assert (surprisal >= 0).all() and (entropy >= 0).all()


@pytest.mark.parametrize("vocabulary", [7, BLOCK // 3, BLOCK + 1])
def test_blocks_of_rows_change_nothing(vocabulary):
    logits = torch.randn(8, vocabulary)
    for column, alone in zip(
        capture(logits), zip(*(capture(row[None]) for row in logits), strict=True), strict=True
    ):
        torch.testing.assert_close(column, torch.cat(alone), atol=1e-6, rtol=0)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("vocabulary", [5, BLOCK + 1])
def test_what_is_not_finite_shows(wrong, vocabulary):
    logits = torch.zeros(3, vocabulary)
    logits[1, 2] = wrong
    logits[2] = -math.inf
    _, surprisal, entropy = capture(logits)
    assert surprisal.isfinite().tolist() == [True, False, False]
    assert entropy.isfinite().tolist() == [True, False, False]


def test_half_precision_is_computed_in_float32():
    logits = torch.randn(4, 3000).bfloat16()
    tokens, _, entropy = capture(logits)
    assert entropy.dtype == torch.float32
    torch.testing.assert_close(entropy, reference(logits, tokens)[1].float(), atol=2e-5, rtol=0)


def test_the_pass_is_one_graph_for_a_gpus_compiler():
    """Without a GPU: the compiler takes it whole, whatever the number of rows."""
    compiled = torch.compile(_read, backend="eager", fullgraph=True, dynamic=True)
    for rows in (3, 5):
        logits = torch.randn(rows, 700)
        for one, two in zip(compiled(logits, None, _argmax), capture(logits), strict=True):
            torch.testing.assert_close(one, two, atol=1e-6, rtol=0)
