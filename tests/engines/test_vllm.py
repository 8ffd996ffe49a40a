"""vLLM's answers and traces are Transformers', whatever the scheduler does: make test-vllm.

With each of its model runners; Triton's interpreter runs the kernels of V2.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
import torch

from engines.conftest import ROOT, VLLM, search_path
from trace_workflow.models.audit import audit_traces
from tracecal.capture.model import load_model
from tracecal.io.traces import arrow_metadata, read_arrow, read_traces

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("vllm", "runner")]
CLOSE = 1e-4


def share_equal(
    first: pl.DataFrame, second: pl.DataFrame, columns=("surprisal", "entropy")
) -> float:
    """The share of answers with the same tokens, whose traces must agree."""
    assert first["example_id"].equals(second["example_id"])
    is_same = first["token_ids"] == second["token_ids"]
    for name in columns:
        values = [frame.filter(is_same)[name].explode() for frame in (first, second)]
        assert (values[0] - values[1]).abs().max() < CLOSE
    return is_same.mean()


@pytest.mark.parametrize("model", ["llama", "qwen3", "mistral", "smollm2"])
def test_traces_are_those_of_transformers_and_of_a_teacher_forced_replay(jobs_of, model, runner):
    jobs = jobs_of(model)
    ours = jobs.decode("ours")
    theirs = jobs.decode("theirs", VLLM)
    assert f"runner {runner}\n" in theirs.output
    traces = read_traces(theirs.file)
    assert traces["prompt_token_ids"].equals(read_traces(ours.file)["prompt_token_ids"])
    assert share_equal(traces, read_traces(ours.file)) > 0.9
    # Where a token differs its logit is level: the audit says so, or raises.
    report = audit_traces(load_model(jobs.model, "float32"), traces, CLOSE)
    assert report["answers"] == 24
    assert report["tokens"] > 100
    assert arrow_metadata(theirs.file)["engine"] == VLLM
    assert "engine" not in arrow_metadata(ours.file)


@pytest.mark.parametrize("model", ["llama", "smollm2"])
def test_both_engines_draw_the_same_samples(jobs_of, model):
    jobs = jobs_of(model, 12)
    ours, theirs = (
        read_arrow(jobs.decode(name, engine, "draw_samples").file)
        for name, engine in (("ours", None), ("theirs", VLLM))
    )
    assert ours["sample"].equals(theirs["sample"])
    assert share_equal(ours, theirs, ["surprisal"]) > 0.9


def test_tensor_parallelism_changes_nothing(jobs_of):
    jobs = jobs_of("llama")
    one_gpu = read_traces(jobs.decode("one", VLLM).file)
    two_gpus = read_traces(jobs.decode("two", VLLM, gpus=2).file)
    assert share_equal(one_gpu, two_gpus) > 0.9


def test_hundreds_at_once_chunked_and_preempted(jobs_of):
    jobs = jobs_of("llama", 200, stop=[], max_new_tokens=60)
    roomy = jobs.decode("roomy", VLLM, batch_size=200)
    assert "preempted 0\n" in roomy.output
    tight = {"num_gpu_blocks_override": 40, "max_num_batched_tokens": 200, "max_num_seqs": 200}
    tight |= {"block_size": 32}
    job = jobs.decode("tight", VLLM, batch_size=200, tight=tight)
    assert int(job.output.rpartition("preempted ")[2]) > 50
    traces = read_traces(job.file)
    assert traces.height == 200
    assert share_equal(traces, read_traces(roomy.file)) > 0.9
    audit_traces(load_model(jobs.model, "float32"), traces, CLOSE)


def test_killed_it_goes_on_with_what_it_has_not_finished(jobs_of):
    """Batches of 8 x 4 are kept as they finish; of the one that was killed nothing is."""
    jobs = jobs_of("llama", 120, max_new_tokens=60)
    unkilled = jobs.decode("unkilled", VLLM, batch_size=4)
    job = jobs.start("killed", VLLM, batch_size=4)
    finished = []
    while not finished:
        assert job.process.poll() is None, job.process.communicate()
        finished = list(job.folder.glob("journal/*/*.arrow"))
        time.sleep(0.02)
    job.process.send_signal(signal.SIGKILL)
    job.process.communicate(timeout=60)
    assert not job.file.exists()
    again = jobs.decode("killed", VLLM, batch_size=4)
    assert again.file.read_bytes() == unkilled.file.read_bytes()
    n_finished = re.search(r"(\d+) examples are finished already", again.output)
    assert int(n_finished[1]) in (32, 64, 96)


def test_what_does_not_fit_or_is_not_installed_says_so(jobs_of):
    jobs = jobs_of("llama", 4)
    small = jobs.run("small", VLLM, memory=50)
    assert small.process.returncode == 1
    assert "error: vLLM cannot load" in small.output
    assert "more 'gpus' (on a CPU 'memory_gb')" in small.output
    other = jobs.run("other", "vllm 0.1.0")
    assert other.process.returncode == 1
    assert (
        f"error: this run decodes with vllm 0.1.0, and {VLLM.split()[1]} is installed"
        in other.output
    )


def test_the_documented_snippet_gives_exact_traces(folder_of):
    """As docs/guides/vllm.md has it: vLLM's own `LLM`, its engine in a process of its own."""
    folder = folder_of("smollm2")
    [code] = re.findall(r"```python\n(.+?)```", (ROOT / "docs/guides/vllm.md").read_text(), re.S)
    model = f'"{folder}", dtype="float32", enforce_eager=True, gpu_memory_utilization=0.15'
    code = code.replace('"HuggingFaceTB/SmolLM2-135M-Instruct"', model)
    code += (
        "\nimport json\nids = [[list(o.prompt_token_ids), o.outputs[0].token_ids] for o in outputs]"
    )
    code += "\nprint(json.dumps([ids, traces]))"
    variables = search_path() | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    variables |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    ids, traces = json.loads(next(line for line in run.stdout.splitlines() if line[:3] == "[[["))
    values = [torch.tensor(traces[str(row)]) for row in range(2)]
    answers = {
        "example_id": ["0", "1"],
        "prompt_token_ids": [prompt for prompt, _ in ids],
        "token_ids": [list(answer) for _, answer in ids],
        "surprisal": [value[:, 0].tolist() for value in values],
        "entropy": [value[:, 1].tolist() for value in values],
    }
    report = audit_traces(load_model(folder, "float32"), pl.DataFrame(answers), CLOSE)
    assert report["tokens"] > 10
