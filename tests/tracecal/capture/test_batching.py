"""Batches shrink where memory runs out, and lose or repeat nothing."""

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.beams import beam_task
from trace_workflow.models.decoding import answer_task
from trace_workflow.models.hidden_states import hidden_task
from trace_workflow.models.p_true import judge_answers
from trace_workflow.models.prompts import ask
from trace_workflow.models.sampling import sample_task
from tracecal.capture.batches import in_batches
from tracecal.errors import InputError


def prompts_of(lengths):
    return [
        {"example_id": f"e{index}", "prompt_token_ids": [1] * length}
        for index, length in enumerate(lengths)
    ]


@given(
    lengths=st.lists(st.integers(1, 9), max_size=40),
    size=st.integers(1, 50),
    room=st.integers(1, 50),
)
def test_every_prompt_is_worked_on_once_longest_first(lengths, size, room):
    sizes = []

    def work(batch):
        if len(batch) > room:
            raise torch.OutOfMemoryError
        sizes.append(len(batch))
        return [prompt["example_id"] for prompt in batch]

    prompts = prompts_of(lengths)
    done = in_batches(prompts, size, "answers", work)
    assert sorted(done) == sorted(prompt["example_id"] for prompt in prompts)
    by_id = {prompt["example_id"]: len(prompt["prompt_token_ids"]) for prompt in prompts}
    assert [by_id[one] for one in done] == sorted(lengths, reverse=True)
    assert max(sizes, default=0) <= min(size, room)


def test_a_prompt_that_never_fits_is_named():
    def work(batch):
        raise torch.OutOfMemoryError

    with pytest.raises(InputError, match="example 'e0' alone does not fit"):
        in_batches(prompts_of([3]), 8, "answers", work)


def test_other_errors_pass():
    def work(batch):
        raise RuntimeError("not memory")

    with pytest.raises(RuntimeError, match="not memory"):
        in_batches(prompts_of([3]), 8, "answers", work)


TASK = pl.DataFrame(
    {
        "example_id": [f"e{index}" for index in range(12)],
        "question": ["What is it? " * (1 + index % 5) + str(index) for index in range(12)],
        "context": [None] * 12,
    },
    schema_overrides={"context": pl.String},
)
ASKING = PromptSettings(max_new_tokens=12)


def test_running_out_of_memory_changes_no_answer(make_model, tokenizer, monkeypatch):
    model, prompts = make_model(), ask(tokenizer, TASK, ASKING)
    plenty = answer_task(model, prompts, tokenizer, ASKING, 64)
    forward = type(model).forward

    def scarce(self, input_ids, **rest):
        if len(input_ids) > 3:
            raise torch.OutOfMemoryError
        return forward(self, input_ids=input_ids, **rest)

    # The signature tells Transformers which arguments the model takes.
    scarce.__signature__ = __import__("inspect").signature(forward)
    monkeypatch.setattr(type(model), "forward", scarce)
    halved = answer_task(model, prompts, tokenizer, ASKING, 64)
    assert len(plenty) == len(halved) == 12
    by_id = {row["example_id"]: row for row in halved}
    for row in plenty:
        other = by_id[row["example_id"]]
        assert row["token_ids"] == other["token_ids"]
        np.testing.assert_allclose(row["entropy"], other["entropy"], atol=1e-4)
        np.testing.assert_allclose(row["surprisal"], other["surprisal"], atol=1e-4)


@pytest.mark.parametrize("step", ["answers", "beams", "samples", "hidden states", "P(True)"])
def test_the_example_whose_numbers_are_not_finite_is_named(make_model, tokenizer, step):
    """A token that one prompt alone holds is given a broken embedding."""
    model = make_model()
    task = TASK.with_columns(question=pl.col("question").str.replace("7$", "7 @"))
    prompts = ask(tokenizer, task, ASKING)
    (broken,) = tokenizer("@", add_special_tokens=False)["input_ids"]
    assert [row["example_id"] for row in prompts if broken in row["prompt_token_ids"]] == ["e7"]
    with torch.no_grad():
        model.get_input_embeddings().weight[broken] = float("nan")
    work = {
        "answers": lambda: answer_task(model, prompts, tokenizer, ASKING, 4),
        "beams": lambda: beam_task(model, prompts, tokenizer, ASKING, 12, width=3),
        "samples": lambda: sample_task(model, prompts, tokenizer, ASKING, 12, 3, 1.0, 1),
        "hidden states": lambda: hidden_task(model, prompts, 0.5, 4),
        "P(True)": lambda: judge_answers(model, prompts, tokenizer, 4),
    }
    with pytest.raises(InputError, match="NaN or infinite on example 'e7'"):
        work[step]()


def test_every_batch_is_kept_as_soon_as_it_is_done():
    kept = []
    in_batches(prompts_of([1, 2, 3]), 2, "answers", lambda batch: list(batch), kept.append)
    assert [[row["example_id"] for row in rows] for rows in kept] == [["e2", "e1"], ["e0"]]


def test_rows_hold_what_the_files_need(make_model, tokenizer):
    model, prompts = make_model(), ask(tokenizer, TASK, ASKING)
    for row in answer_task(model, prompts, tokenizer, ASKING, 5):
        assert row["answer"] == tokenizer.decode(row["token_ids"], skip_special_tokens=True)
        assert len(row["tokens"]) == len(row["token_ids"])
        assert row["prompt"].endswith("\n")
    for row in beam_task(model, prompts, tokenizer, ASKING, 5, width=3):
        assert [len(ids) for ids in row["beam_token_ids"]] == row["beam_length"]
        normalised = np.array(row["beam_logprob"]) / row["beam_length"]
        assert (np.diff(normalised) <= 0).all()


@pytest.mark.parametrize("exception", ["torch", "python"])
def test_memory_that_runs_out_on_a_cpu_halves_the_batch_too(exception):
    sizes = []

    def work(batch):
        if len(batch) > 2:
            if exception == "python":
                raise MemoryError
            torch.empty(2**60)  # what a CPU without that much raises
        sizes.append(len(batch))
        return batch

    assert len(in_batches(prompts_of([3] * 8), 8, "answers", work)) == 8
    assert sizes == [2] * 4


def test_other_errors_of_torch_are_not_taken_for_lack_of_memory():
    with pytest.raises(RuntimeError, match="size mismatch|shapes"):
        in_batches(prompts_of([3]), 8, "answers", lambda batch: torch.ones(2) @ torch.ones(3, 3))
