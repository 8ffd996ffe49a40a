"""A small run on a local model and local rows, in a checkout of its own: for faults and edits."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import yaml
from safetensors.torch import load_file, save_file

from support.checkout import Checkout, copied_repository
from support.tiny import initialise_model, train_tokenizer

RESULTS = Path("results/small")
TARGETS = [
    str(RESULTS / name)
    for name in ("calibrators/m/sums.json", "audits/m/sums.json", "tables/main_comparison.csv")
]
# What an edit changes, and what it was before; each changes some result.
EDITS = {
    "operators": (
        "workflow_scripts/tracecal/estimators/features.py",
        ("ALPHA, BETA, GAMMA = 0.40, 0.40, 0.20", "ALPHA, BETA, GAMMA = 0.50, 0.30, 0.20"),
    ),
    "prompt": (
        "workflow_scripts/trace_workflow/models/prompts.py",
        ('"\\n\\n".join(blocks) + "\\n"', '"\\n\\n".join(blocks) + "\\n\\n"'),
    ),
    "extract": (
        "workflow_scripts/trace_workflow/correctness/label.py",
        ("return answer.strip()", "return answer.strip().swapcase()"),
    ),
}
# What a run depends on; 0 is how it starts. What is given in place keeps its size and its time.
START = dict.fromkeys([*EDITS, "rows", "weights", "splits"], 0)
State = Mapping[str, int]


class Small:
    """The checkout; `state` says which variant of each thing it holds."""

    def __init__(self, root: Path) -> None:
        self.checkout: Checkout = copied_repository(root)
        self.root = root
        self.state: State = {}
        tokenizer = train_tokenizer()
        initialise_model(len(tokenizer), "llama", 0).save_pretrained(root / "model")
        tokenizer.save_pretrained(root / "model")
        # Copies: what is loaded is the file itself, mapped, and would change with it.
        loaded = load_file(root / "model/model.safetensors")
        self.weights = {name: value.clone() for name, value in loaded.items()}
        task = {
            "label": "Sums",
            "source": {"path": "rows.jsonl"},
            "fields": {"question": "q", "references": "a"},
            "correctness": "numeric",
            "max_new_tokens": 5,
        }
        (root / "sums.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
        self.become(START)

    def become(self, state: State) -> None:
        """Give everything the variant that `state` names; what has it already is not touched."""
        for name, variant in state.items():
            if self.state.get(name) != variant:
                getattr(self, f"_{name}", self._edit)(variant, name)
        self.state = dict(state)

    def _edit(self, variant: int, name: str) -> None:
        file, variants = EDITS[name]
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert variants[variant] in text or variants[not variant] in text
        path.write_text(text.replace(variants[not variant], variants[variant]), encoding="utf-8")

    def _rows(self, variant: int, _: str) -> None:
        rows = [{"q": f"What is {n} + {n % 7 + variant}?", "a": f"{n}"} for n in range(10, 50)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        _replace(self.root / "rows.jsonl", text.encode())

    def _weights(self, variant: int, _: str) -> None:
        scaled = {name: value * (1, 0.9)[variant] for name, value in self.weights.items()}
        part = self.root / "part.safetensors"
        save_file(scaled, part, metadata={"format": "pt"})
        _replace(self.root / "model/model.safetensors", part.read_bytes())
        part.unlink()

    def _splits(self, variant: int, _: str) -> None:
        config = {
            "run": RESULTS.name,
            "models": [{"slug": "m", "source": {"path": "model"}, "chat": False}],
            "tasks": [{"slug": "sums", "file": "sums.yaml"}],
            "study": {"main": {"models": ["m"], "tasks": ["sums"]}},
            "estimators": ["seq_logp", "windowed_entropy", "trace", "trace_plus"],
            "splits": {"count": 2 + variant},
            "audit": {"answers": 4},
            "bootstrap": {"resamples": 10},
        }
        (self.root / "small.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run to the targets, or what `arguments` say; it may fail."""
        given = arguments or TARGETS
        return self.checkout.snakemake(*given, "--nolock", config="small.yaml", check=False)

    def begin(self) -> subprocess.Popen:
        """Start a run and do not wait for it."""
        return self.checkout.begin(*TARGETS, "--nolock", config="small.yaml")

    def finish(self, *how: str, attempts: int = 6) -> str:
        """Run until all is made, doing what the errors say; everything that was said.

        `how` are options of the checkout's own command.
        """
        said = ""
        for _ in range(attempts):
            given = (*how, *TARGETS, "--nolock")
            process = self.checkout.run(*given, config="small.yaml", check=False)
            output = process.stdout + (self.root / RESULTS / "logs/run.log").read_text()
            said += output
            if process.returncode == 0:
                return said
            for path in dict.fromkeys(re.findall(r"--force (results/\S+)", output)):
                said += self.run("--force", path).stdout
        raise AssertionError(f"it does not end:\n{said[-6000:]}")

    def results(self) -> dict[str, str]:
        """Every result's digest; what only tells of the making, its time among it, is left out."""
        making = ("benchmarks", "logs", "work", "models")
        return {
            str(path.relative_to(self.root / RESULTS)): sha256(path.read_bytes()).hexdigest()
            for path in sorted((self.root / RESULTS).rglob("*"))
            if path.is_file() and path.relative_to(self.root / RESULTS).parts[0] not in making
        }

    def forget(self) -> None:
        """Leave nothing of any run."""
        for folder in ("results", ".snakemake"):
            shutil.rmtree(self.root / folder, ignore_errors=True)


def _replace(path: Path, content: bytes) -> None:
    """New content in place, with the time of an old one."""
    path.write_bytes(content)
    os.utime(path, (1e9, 1e9))
