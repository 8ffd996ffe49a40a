"""Tensor parallelism: two processes, each with half of every layer, give one's traces."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from support.tiny import ARCHITECTURES, initialise_model, train_tokenizer
from trace_workflow.models import parallel
from trace_workflow.models.beams import search_beams
from trace_workflow.models.decoding import decode
from trace_workflow.models.hidden_states import last_states
from trace_workflow.models.p_true import next_probabilities
from trace_workflow.models.parallel import in_parallel, on_model
from tracecal.capture.stop_strings import StopStrings

LOADING = {"dtype": "float32", "attention": None, "quantization": None}
PROMPTS = [[*range(5, 14 + i), *range(20, 20 + i)] for i in range(5)]
ROOT = Path(__file__).resolve().parents[3]


def everything(model, kept=None):
    """Answers, beams, hidden states and a judgement; `kept` gets how much of a layer is here."""
    stops = StopStrings(None, ())
    if kept is not None:
        kept.append(model.model.layers[0].self_attn.q_proj.weight.to_local().shape)
    return (
        decode(model, PROMPTS, [1], stops, 12, slots=3),
        search_beams(model, PROMPTS[:2], [1], stops, 6, 3),
        last_states(model, PROMPTS, 1),
        next_probabilities(model, PROMPTS),
    )


def failing(model, here=False):
    """Fails in the other process alone, while the job's own waits."""
    if not here:
        raise ValueError("out of order")
    time.sleep(600)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder per architecture: two key-value heads, so that two processes can share them."""
    made = tmp_path_factory.mktemp("models")
    for architecture in ARCHITECTURES:
        model = initialise_model(320, architecture, 0, heads=4)
        model.save_pretrained(made / architecture)
        train_tokenizer().save_pretrained(made / architecture)
    return made


FURTHER = [pytest.param(name, marks=pytest.mark.slow) for name in ("gemma2", "qwen2_moe")]


@pytest.mark.parametrize("architecture", ["llama", *FURTHER])
def test_two_processes_give_what_one_gives(folders, architecture):
    folder, shapes = folders / architecture, []
    expected = on_model(everything, folder, LOADING, 1)
    answers, beams, states, judged = in_parallel(2, everything, folder, LOADING, kept=shapes)
    width = initialise_model(320, architecture, 0, heads=4).model.layers[0].self_attn.q_proj
    assert shapes == [(width.out_features // 2, width.in_features)]
    for answer, other in zip(answers, expected[0], strict=True):
        assert answer.token_ids == other.token_ids
        assert answer.surprisal == pytest.approx(other.surprisal, abs=1e-4)
        assert answer.entropy == pytest.approx(other.entropy, abs=1e-4)
    for prompt, others in zip(beams, expected[1], strict=True):
        assert [one.token_ids for one in prompt] == [one.token_ids for one in others]
        assert [one.logprob for one in prompt] == pytest.approx(
            [one.logprob for one in others], abs=1e-4
        )
    torch.testing.assert_close(states, expected[2], rtol=0, atol=1e-4)
    torch.testing.assert_close(judged, expected[3], rtol=0, atol=1e-4)
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(
    ("architecture", "heads", "quantization", "shared"),
    [("llama", 4, None, True), ("llama", 2, None, False), ("llama", 4, "8bit", False)],
)
def test_layers_are_shared_where_heads_and_weights_allow_it(
    tmp_path, monkeypatch, architecture, heads, quantization, shared
):
    initialise_model(320, architecture, 0, heads).save_pretrained(tmp_path)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    chosen = {
        "in_parallel": lambda count, *given: count,
        "load_model": lambda folder, across_gpus, **loading: (
            "across_gpus" if across_gpus else "one device"
        ),
    }
    for name, function in chosen.items():
        monkeypatch.setattr(parallel, name, function)
    loading = LOADING | {"quantization": quantization}
    given = on_model(lambda model: model, tmp_path, loading, 4)
    assert given == (2 if shared else "across_gpus")
    assert on_model(lambda model: model, tmp_path, loading, 1) == "one device"


@pytest.mark.slow
def test_where_another_process_fails_the_job_ends(folders):
    program = (
        "from tests.trace_workflow.models import test_parallel as t; "
        "from trace_workflow.models import parallel as p; "
        f"p.GRACE = 0.1; p.in_parallel(2, t.failing, {str(folders / 'llama')!r}, t.LOADING, here=True)"
    )
    paths = f"{ROOT / 'workflow_scripts'}:{ROOT / 'tests'}:{ROOT}"
    run = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "ValueError: out of order" in run.stderr
