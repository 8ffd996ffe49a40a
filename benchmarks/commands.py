"""What the commands cost whoever types them: `calibrate`, `score` and `explore` of made-up answers.

Answers of 9 tokens in JSON Lines, with their log-probabilities and entropies. Each command is a
process of its own, its start and the reading of its file included; beside it stands one of
scikit-learn, which fits or applies a single logistic regression to two features of the same file,
without guarantees. `make bench AREAS=commands:100000` calibrates on as many answers.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np
import pytest

from benchmarks.timing import Row, used
from support.chromium import started

SIZES = (300, 2_000, 20_000)
SCORED, SHOWN, TOKENS = 100_000, 10_000, 9
TRACECAL = (sys.executable, "-m", "tracecal.cli.main")
# Mean and smallest log-probability, as many a script has them.
SKLEARN = """
import json, sys
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict
def read(path):
    rows = [json.loads(line) for line in open(path)]
    x = np.array([[np.mean(row["logprobs"]), min(row["logprobs"])] for row in rows])
    return rows, x, np.array([row["correct"] for row in rows])
rows, x, y = read(sys.argv[1])
model = LogisticRegression()
if len(sys.argv) == 2:
    p = cross_val_predict(model, x, y, method="predict_proba")[:, 1]
    print(brier_score_loss(y, p), roc_auc_score(y, p))
else:
    model.fit(x, y)
    rows, x, _ = read(sys.argv[2])
    with open(sys.argv[3], "w") as file:
        for row, p in zip(rows, model.predict_proba(x)[:, 1]):
            file.write(json.dumps({"id": row["id"], "probability": p}) + "\\n")
"""


def written(path: Path, n: int) -> Path:
    """A file of `n` answers, riskier ones more often wrong."""
    rng = np.random.default_rng(n)
    risk = rng.gamma(2.0, 0.4, n)
    surprisal = rng.gamma(1.5, risk[:, None] / 2, (n, TOKENS)).round(4)
    entropy = rng.gamma(2.0, risk[:, None] / 2, (n, TOKENS)).clip(max=10).round(4)
    right = rng.random(n) < np.exp(-risk)
    fixed = {"model": "m", "stop_token": "included", "processed": "no"}
    with path.open("w", encoding="utf-8") as file:
        for place in range(n):
            own = {
                "id": f"a{place}",
                "question": f"Question {place}?",
                "answer": "one of nine words",
            }
            own |= {"logprobs": (-surprisal[place]).tolist(), "entropy": entropy[place].tolist()}
            file.write(json.dumps(own | {"correct": bool(right[place])} | fixed) + "\n")
    return path


def rows(*sizes: int) -> Iterator[Row]:
    """CPU seconds and peak memory, once each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = (sys.executable, "-c", SKLEARN)
        for n in sizes or SIZES:
            labelled = written(folder / f"{n}.jsonl", n)
            made = ("--answers", labelled, "--task", "t", "--output", folder / "C.json")
            ours, theirs = used(*TRACECAL, "calibrate", *made), used(*program, labelled)
            yield from _both(f"calibrate on {n:,} answers", ours, theirs, n)
        new = written(folder / "new.jsonl", SCORED)
        scoring = ("--answers", new, "--calibrator", folder / "C.json", "--output")
        ours = used(*TRACECAL, "score", *scoring, folder / "scored.jsonl")
        theirs = used(*program, labelled, new, folder / "other.jsonl")
        yield from _both(f"score {SCORED:,} answers", ours, theirs, SCORED)
        yield from _explored(folder)


def _both(
    work: str, ours: tuple[float, float], theirs: tuple[float, float], n: int
) -> Iterator[Row]:
    against = "scikit-learn, one fit"
    (cpu, memory), (other, others) = ours, theirs
    yield Row(work, cpu, other, against, cpu / other, items=n, unit="answers")
    yield Row(f"{work}, peak MB", memory, others, against, memory / others)


def _explored(folder: Path) -> Iterator[Row]:
    """The page of an explorer is written and opened, beside a plain table of the same answers."""
    shown, page, table = (folder / one for one in ("shown.jsonl", "page.html", "table.html"))
    written(shown, SHOWN)
    given = ("--answers", shown, "--calibrator", folder / "C.json", "--output", page)
    cpu, memory = used(*TRACECAL, "explore", *given)
    yield Row(f"explore {SHOWN:,} answers", cpu, items=SHOWN, unit="answers")
    yield Row(f"explore {SHOWN:,} answers, peak MB", memory)
    cells = (json.loads(line) for line in shown.read_text(encoding="utf-8").splitlines())
    lines = ["".join(f"<td>{escape(str(value))}" for value in row.values()) for row in cells]
    table.write_text("<!doctype html><table><tr>" + "<tr>".join(lines), encoding="utf-8")
    try:
        with started(folder / "profile") as browser:
            took = []
            for path in (page, table):
                browser.open(path)
                before = time.perf_counter()
                browser.open(path)
                browser.ask("document.body.offsetHeight")
                took.append(time.perf_counter() - before)
    except pytest.skip.Exception:  # no browser here
        return
    work = f"open the page of {SHOWN:,} answers, by the clock"
    yield Row(work, *took, "a plain table of them", took[0] / took[1], items=SHOWN, unit="answers")
