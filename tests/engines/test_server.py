"""The proxy before vLLM's own server, and its answers read and replayed: make test-vllm."""

import json
import os
import subprocess
import sys
import time

import httpx2 as httpx
import pytest

from support.labelled_answers import fitted
from support.log_rows import write
from support.running import proxied
from tracecal.answers.answers import read_file
from tracecal.answers.reading import Reading
from tracecal.calibrator.scoring import score_answers
from tracecal.capture.model import load_model, load_tokenizer
from tracecal.capture.teacher_forcing import replay_answers
from tracecal.serving.scorer import Scorer

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("vllm")]
PORT = 8317
SERVER = f"http://127.0.0.1:{PORT}"
OPTIONS = "--served-model-name m --dtype float32 --max-model-len 512 --enforce-eager".split()
READING = Reading(vocabulary=49152, processed="no")
QUESTION = "What is the capital of France? Answer with the name only."
GREEDY = {"model": "m", "temperature": 0}
CHAT = GREEDY | {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 12}
SUM = {"prompt": "Question: What is 2+3?\nAnswer:", "max_tokens": 6, "stop": ["\n"]}
REQUESTS = {
    "chat/completions": (CHAT, {"logprobs": True, "top_logprobs": 20, "return_token_ids": True}),
    "completions": (GREEDY | SUM, {"logprobs": 20, "return_token_ids": True}),
}


@pytest.fixture(scope="module")
def model(folder_of):
    return folder_of("smollm2")


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    """vLLM's server on loopback."""
    log = tmp_path_factory.mktemp("server") / "log"
    arguments = ["--model", str(model), "--host", "127.0.0.1", "--port", str(PORT), *OPTIONS]
    variables = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "OMP_NUM_THREADS": "1"}
    variables |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1"}
    start = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(start, env=os.environ | variables, stdout=output, stderr=output)
    try:
        while process.poll() is None:
            try:
                httpx.get(f"{SERVER}/health").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.5)
        assert process.poll() is None, log.read_text()[-3000:]
        with httpx.Client(base_url=f"{SERVER}/v1/", timeout=300) as client:
            yield client
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def answers(server, tmp_path_factory):
    """What the server answers when it is asked directly, as read from a file."""
    rows = [
        {"id": path, "response": server.post(path, json=request | additions).json()}
        for path, (request, additions) in REQUESTS.items()
    ]
    return read_file(write(tmp_path_factory.mktemp("answers") / "a.jsonl", rows), READING).frame


def streamed_confidence(client, path, request):
    """The confidence that comes with the last piece of a streamed answer."""
    lines = client.post(path, json=request | {"stream": True}).text.splitlines()
    events = [json.loads(line[5:]) for line in lines if line.startswith("data: {")]
    choices = [choice for event in events for choice in event["choices"]]
    return next(choice["confidence"] for choice in choices if "confidence" in choice)


def test_confidence_is_what_scoring_the_same_answer_gives(server, answers):
    scored = score_answers(answers, calibrator := fitted())
    assert all(0 < probability < 1 for probability in scored["probability"])
    scored = scored.rows_by_key("example_id", named=True)
    serving = proxied(Scorer(calibrator, READING), SERVER)
    with serving, httpx.Client(base_url=serving.url, timeout=300) as client:
        for name, (request, _) in REQUESTS.items():
            path = f"/v1/{name}"
            choice = client.post(path, json=request).json()["choices"][0]
            assert choice["logprobs"] is None
            for confidence in (choice["confidence"], streamed_confidence(client, path, request)):
                for key in ("probability", "lower", "upper"):
                    assert confidence[key] == pytest.approx(scored[name][0][key], abs=1e-6)


def test_replay_gives_the_servers_surprisals_and_entropies_within_their_bounds(model, answers):
    assert set(answers["stop_token"]) == {"included"}
    loaded = load_model(model, "float32"), load_tokenizer(model)
    exact = replay_answers(*loaded, answers, 4)
    for name in ("surprisal", "entropy"):
        assert exact[name].list.len().equals(answers[name].list.len())
    pairs = zip(exact.iter_rows(named=True), answers.iter_rows(named=True), strict=True)
    for exact_row, row in pairs:
        assert exact_row["surprisal"] == pytest.approx(row["surprisal"], abs=1e-4)
        bounds = zip(row["entropy_lower"], exact_row["entropy"], row["entropy_upper"], strict=True)
        assert all(low <= entropy <= high for low, entropy, high in bounds)
