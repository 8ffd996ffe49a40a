"""What the workflow's work costs, beside an alternative and the least it could cost.

`make bench` runs it, or `make bench AREAS=operators` one area. An area is a module of this folder
whose function `rows` yields `Row`s; it is named in `AREAS`. Behind a colon may stand sizes that
`rows` takes: `AREAS=commands:100000`. One thread throughout; the table is printed, and each run is
kept as JSON in results/bench.
"""

import importlib
import json
import os
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path

AREAS = (
    "decoding",
    "polygraph",
    "operators",
    "calibration",
    "commands",
    "parts",
    "workflow",
    "growth",
    "serve",
    "one_answer",
    "reading",
    "start",
)
ROOT = Path(__file__).resolve().parents[1]
THREADS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
COLUMNS = (
    "work",
    "ours [CPU s]",
    "alternative [CPU s]",
    "ratio",
    "floor [CPU s]",
    "rate",
    "against",
)


def main(areas: list[str]) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    results = {}
    print(_line(COLUMNS))
    for area in areas or AREAS:
        results[area] = []
        name, _, sizes = area.partition(":")
        own = importlib.import_module(f"benchmarks.{name}")
        for row in own.rows(*map(int, filter(None, sizes.split(",")))):
            print(_line(_cells(row)), flush=True)
            results[area].append(asdict(row))
    run = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "areas": results,
    }
    path = ROOT / "results" / "bench" / f"{run['when'].replace(':', '')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    print(f"kept in {path.relative_to(ROOT)}")


def _cells(row: object) -> list[str]:
    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.3g}"

    rate = f"{row.items / row.ours:,.0f} {row.unit}/s" if row.items else "–"
    numbers = map(number, (row.ours, row.alternative, row.ratio, row.floor))
    return [row.work, *numbers, rate, row.against or "–"]


def _line(cells: tuple[str, ...] | list[str]) -> str:
    work, *numbers, rate, against = cells
    return f"{work:<58}" + "".join(f"{one:>20}" for one in numbers) + f"{rate:>24}  {against}"


if __name__ == "__main__":
    main(sys.argv[1:])
