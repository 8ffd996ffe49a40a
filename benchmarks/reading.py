"""What reading a log costs: rows of batches with 8 tokens of 5 alternatives, 4.7 kB each.

The plain recipe takes the mean and the least log-probability of each row.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.before import compared
from benchmarks.serve import answer
from benchmarks.timing import Row
from support.log_rows import batch

SIZES = (4_000, 20_000)
TOKENS, ALTERNATIVES = 8, 5
READING = """
import tracecal
def work():
    frame = tracecal.read_answers(sys.argv[1])
    return np.concatenate([frame[name].explode() for name in ("surprisal", "entropy_upper")])
"""
PLAIN = """
def work():
    numbers = []
    for line in open(sys.argv[1], "rb"):
        choice = json.loads(line)["response"]["body"]["choices"][0]
        logprobs = [token["logprob"] for token in choice["logprobs"]["content"]]
        numbers += [np.mean(logprobs), min(logprobs)]
    return numbers
"""


def rows(*sizes: int) -> Iterator[Row]:
    body = answer(TOKENS, ALTERNATIVES)
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes or SIZES:
            log = Path(folder) / f"{n}.jsonl"
            with log.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(batch(body, f"q{place}")) + "\n" for place in range(n))
            yield from compared(f"reading {n:,} answers", READING, PLAIN, log, items=n)
