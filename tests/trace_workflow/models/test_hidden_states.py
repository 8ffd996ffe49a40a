"""Hidden states of the last prompt token: the right one, whatever it is batched with."""

import numpy as np
import pytest
import torch

from support.arrow_files import write_arrow
from support.tiny import ARCHITECTURES
from trace_workflow.models.hidden_states import HIDDEN, hidden_task, last_states, layer_at
from tracecal.capture.batches import NotFiniteError
from tracecal.io.traces import provenance, read_arrow


def rows_of(prompts):
    return [
        {"example_id": f"{index:02}", "prompt_token_ids": ids} for index, ids in enumerate(prompts)
    ]


def test_depth_names_a_layer():
    assert [layer_at(depth, 32) for depth in (0, 0.5, 0.75, 1)] == [0, 16, 24, 32]
    assert layer_at(0.5, 2) == 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_batches_change_no_state(make_model, prompts, architecture):
    model = make_model(architecture)
    for depth in (0.0, 0.5, 1.0):
        together = hidden_task(model, rows_of(prompts), depth, 64)
        alone = hidden_task(model, rows_of(prompts), depth, 1)
        for one, other in zip(
            sorted(together, key=lambda row: row["example_id"]),
            sorted(alone, key=lambda row: row["example_id"]),
            strict=True,
        ):
            assert one["example_id"] == other["example_id"]
            np.testing.assert_allclose(one["hidden"], other["hidden"], atol=1e-4)


def test_the_state_is_the_one_that_predicts_the_first_token(make_model, prompts):
    model = make_model()
    with torch.inference_mode():
        states = last_states(model, prompts, 2)
        for state, ids in zip(states, prompts, strict=True):
            logits = model(torch.tensor([ids])).logits[0, -1]
            torch.testing.assert_close(model.lm_head(state), logits, atol=1e-4, rtol=1e-4)


def test_the_embeddings_are_layer_zero(make_model, prompts):
    model = make_model()
    states = last_states(model, prompts, 0)
    last = torch.tensor([ids[-1] for ids in prompts])
    torch.testing.assert_close(states, model.get_input_embeddings()(last).detach())


def test_the_file_says_its_layer(make_model, prompts, tmp_path):
    rows = hidden_task(make_model(), rows_of(prompts), 0.5, 4)
    metadata = provenance("tiny", "sha256:0", "float32", "prefill", seed=1)
    write_arrow(rows, HIDDEN, metadata, tmp_path / "task.arrow")
    frame = read_arrow(tmp_path / "task.arrow")
    assert frame["layer"].unique().to_list() == [1]
    assert frame["hidden"].list.len().unique().to_list() == [32]
    assert frame["example_id"].to_list() == [row["example_id"] for row in rows_of(prompts)]


def test_a_state_that_is_not_finite_stops_the_job(make_model, prompts):
    model = make_model()
    with torch.no_grad():
        model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(NotFiniteError, match="hidden state of layer 2"):
        last_states(model, prompts, 2)
