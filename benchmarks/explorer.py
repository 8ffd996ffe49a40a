"""How the explorer bears 10,000 answers, half of them parts of others: its size, and what a reader
waits for.

Run as a program, with the packages `tracecal` and `explore` (of the tests) on the path:
    PYTHONPATH=workflow_scripts:tests python -m benchmarks.explorer
"""

import tempfile
import time
from pathlib import Path

import polars as pl

from support.chromium import Chromium, installed
from support.explorer_answers import MODELS, TASKS, answers, in_parts
from tracecal.estimators.estimator import entries
from tracecal.estimators.registry import ESTIMATORS
from tracecal.explorer.explorer_contents import contents
from tracecal.explorer.explorer_page import page

ENTRIES = entries(ESTIMATORS)
ANSWERS, LONGEST = 10_000, 120
# Worked examples, as prompts of base models hold them.
EXAMPLES = (
    "Question: how many mills stand by the river? Answer: seven old ones, to the north.\n" * 18
)
CHANGE = (
    "(() => {{ const c = document.getElementById('{control}'); const before = performance.now();"
    " c.value = '{value}'; c.dispatchEvent(new Event('input'));"
    " document.getElementById('list').offsetHeight; return performance.now() - before; }})()"
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "explorer.html"
        whole = answers(ANSWERS // 8, ENTRIES, LONGEST)
        frame, parents = in_parts(whole.with_columns(prompt=pl.lit(EXAMPLES) + pl.col("prompt")))
        before = time.perf_counter()
        tasks = TASKS | {"halves": "Halves"}
        data = contents(frame, ENTRIES, MODELS, tasks, "benchmark", frame.height, parents=parents)
        path.write_text(page(data), encoding="utf-8")
        print(f"{frame.height} answers of up to {LONGEST} tokens, {len(ENTRIES)} estimators")
        print(
            f"written in {time.perf_counter() - before:.1f} s, {path.stat().st_size / 1e6:.1f} MB"
        )
        browser = Chromium(installed(), Path(folder) / "profile")
        before = time.perf_counter()
        browser.open(path)
        print(f"loaded in {time.perf_counter() - before:.2f} s")
        before = time.perf_counter()
        browser.open(path)
        print(f"loaded again in {time.perf_counter() - before:.2f} s")
        steps = [("by", "mars"), ("order", "up"), ("outcome", "wrong"), ("outcome", "peak-wrong"), ("find", "seven old"),
                 ("find", "seven old m")]  # fmt: skip
        for control, value in steps:
            took = browser.ask(CHANGE.format(control=control, value=value))
            print(f"{control} = {value}: {took:.0f} ms")
        browser.ask("document.getElementById('everything').click()")
        before = time.perf_counter()
        browser.press(*["ArrowDown"] * 50)
        print(f"arrow down: {(time.perf_counter() - before) / 50 * 1000:.0f} ms each")
        browser.close()


if __name__ == "__main__":
    main()
