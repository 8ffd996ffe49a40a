"""The package installed beside Inspect and lm-evaluation-harness, and answers with labels."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from support.wheel import install

QUESTIONS = Path(__file__).with_name("questions.py")
OWN = {
    "tracecal": "-m tracecal.cli.main",
    "lm_eval_models": "-m tracecal.integrations.lm_eval_models",
    "harness": str(Path(__file__).with_name("harness.py")),
}


def made(n, seed):
    """`id`, `input`, `text` and steps of answers, 'yes' or 'no', of 1 to 6 tokens: a risky answer
    is more often wrong. A step is the log-probabilities of its token and of the two next likely.
    """
    rng = np.random.default_rng(seed)
    answers = []
    for place in range(n):
        risk, length = rng.gamma(1.5, 0.25), int(rng.integers(1, 7))
        first = np.exp(-rng.gamma(1.5, risk / 2 + 0.01, size=length))
        steps = np.log(np.stack([first, (1 - first) * 0.6, (1 - first) * 0.3 + 1e-9], axis=1))
        text = "yes" if rng.random() < np.exp(-risk) else "no"
        told = {"id": f"q{seed}-{place}", "input": f"Question {seed}-{place}?", "text": text}
        answers.append(told | {"steps": steps.tolist()})
    return answers


def chat_logprobs(steps):
    """Steps as in OpenAI's chat format, whose tokens vLLM returns as ids."""

    def token(place, value):
        name = f"token_id:{place}"
        return {"token": name, "logprob": value, "bytes": list(name.encode())}

    return {
        "content": [
            token(0, step[0]) | {"top_logprobs": [token(*pair) for pair in enumerate(step)]}
            for step in steps
        ]
    }


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """The variables of a process that finds the installed package, its entry point and no hub."""
    if find_spec("inspect_ai") is None or find_spec("lm_eval") is None:
        pytest.skip("Inspect and lm-evaluation-harness are not installed: make test-evaluators")
    folder = tmp_path_factory.mktemp("package")
    install(folder, folder / "site-packages")
    own = {"HOME": str(folder), "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    return os.environ | own | {"PYTHONPATH": str(folder / "site-packages")}


@pytest.fixture(scope="session")
def run(environment):
    """Run a command of the environment; its output, both kinds. `fails`: it must fail."""

    def run(folder, command, *arguments, fails=False):
        program = [str(Path(sys.executable).parent / command)]
        if command in OWN:
            program = [sys.executable, *OWN[command].split()]
        said = subprocess.run(
            [*program, *map(str, arguments)],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert (said.returncode != 0) == fails, said.stdout + said.stderr
        return said.stdout + said.stderr

    return run


@pytest.fixture(scope="session")
def evaluated(run, tmp_path_factory):
    """Answers evaluated by Inspect: the log's path."""

    def evaluate(name, answers, *options):
        folder = tmp_path_factory.mktemp(name)
        rows = [
            {
                "id": one["id"],
                "input": one["input"],
                "output": {
                    "model": "m",
                    "usage": {"input_tokens": 1},  # which Inspect would load a tokenizer to count
                    "choices": [
                        {
                            "message": {"role": "assistant", "content": one["text"]},
                            "stop_reason": "stop",
                            "logprobs": one["steps"] and chat_logprobs(one["steps"]),
                        }
                    ],
                },
            }
            for one in answers
        ]
        (folder / "made.json").write_text(json.dumps(rows), encoding="utf-8")
        given = [f"path={folder}/made.json", *options]
        options = [part for one in given for part in ("-T", one)]
        logs = folder / "logs"
        quiet = ["--display", "plain", "--log-dir", logs]
        run(folder, "inspect", "eval", f"{QUESTIONS}@questions", *options, *quiet)
        (log,) = logs.glob("*.eval")
        return log

    return evaluate


@pytest.fixture(scope="session")
def calibrator(run, evaluated):
    """A calibrator's file, fitted on a log of Inspect."""
    log = evaluated("calibration", made(600, 1))
    path = log.parents[1] / "C.json"
    calibrate = ["--task", "questions", "--vocabulary", "1000", "--output", path]
    run(log.parent, "tracecal", "calibrate", "--answers", log, *calibrate)
    return path
