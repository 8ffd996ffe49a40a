"""Simulate what the tables guarantee and print how often it fails (make validate; hours).

`python -m simulations intervals alarms` tries the claims of the named modules alone.
"""

import sys
import time
from collections.abc import Callable, Iterator

from simulations import (
    alarms,
    alternatives,
    asking,
    cascades,
    forecasts,
    group_labels,
    guarantees,
    intervals,
    judges,
    parts,
)
from simulations.claims import Claim
from tracecal.io.log import LOGGER

# How many data sets each claim is tried on.
RUNS = 2000
CLAIMS: dict[str, Callable[[int], Iterator[Claim]]] = {
    "guarantees": guarantees.claims,
    "parts": parts.claims,
    "alternatives": alternatives.claims,
    "asking": asking.claims,
    "judges": judges.claims,
    "forecasts": forecasts.claims,
    "cascades": cascades.claims,
    "worth": lambda runs: cascades.intervals(runs // 10),
    "group_labels": group_labels.claims,
    "intervals": intervals.claims,
    "rankings": lambda runs: intervals.rankings(runs // 5),
    "agreements": lambda runs: intervals.agreements(runs // 5),
    "alarms": alarms.claims,
    "neighbours": alarms.of_neighbours,
    "days": lambda runs: alarms.of_days(runs // 10),
}


def main(names: list[str]) -> int:
    """Print the table; 0 where every claim holds."""
    if unknown := set(names) - set(CLAIMS):
        sys.exit(f"No claims are called {sorted(unknown)}; there are {', '.join(CLAIMS)}.")
    LOGGER.setLevel("ERROR")  # a warning of each data set would bury the table
    failed = 0
    print(f"{'claim':<84} {'runs':>6} {'broken':>8} {'allowed':>8} {'CPU s':>8}")
    for name in names or CLAIMS:
        before = time.process_time()
        for one in CLAIMS[name](RUNS):
            failed += not one.holds
            numbers = f"{one.runs:>6} {one.broken / one.runs:>8.3f} {one.allowed:>8.3f}"
            taken, before = time.process_time() - before, time.process_time()
            mark = "" if one.holds else "  TOO OFTEN"
            print(f"{one.claim:<84} {numbers} {taken:>8.0f}{mark}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
