"""Simulate what the tables guarantee, and print how often it fails (make validate; hours).

`python -m simulations intervals alarms` tries the claims of the named modules alone.
"""

import sys
import time
from collections.abc import Callable, Iterator

from simulations import (
    alarms,
    alternatives,
    asking,
    checks,
    forecasts,
    group_labels,
    guarantees,
    intervals,
    judges,
    lines,
    overall,
    parts,
)
from simulations.claims import Claim
from tracecal.io.log import LOGGER

# Data sets that each claim is tried on.
RUNS = 2000
CLAIMS: dict[str, Callable[[int], Iterator[Claim]]] = {
    "guarantees": guarantees.claims,
    "units": guarantees.unit_claims,
    "renamed": guarantees.renamed_claims,
    "lines": lines.claims,
    "line_groups": lines.group_claims,
    "recall": lines.recall_claims,
    "overall": overall.claims,
    "overall_groups": overall.group_claims,
    "looks": overall.look_claims,
    "parts": parts.claims,
    "alternatives": alternatives.claims,
    "asking": asking.claims,
    "judges": judges.claims,
    "forecasts": forecasts.claims,
    "group_labels": group_labels.claims,
    "intervals": intervals.claims,
    "rankings": lambda runs: intervals.rankings(runs // 5),
    "agreements": lambda runs: intervals.agreements(runs // 5),
    "checks": checks.claims,
    "alarms": alarms.claims,
    "warnings": alarms.warning_claims,
}


def main(names: list[str]) -> int:
    """Print a row per claim; return 0 if all claims hold."""
    if unknown := set(names) - set(CLAIMS):
        sys.exit(f"No claims are called {sorted(unknown)}; there are {', '.join(CLAIMS)}.")
    LOGGER.setLevel("ERROR")  # a warning of each data set would bury the table
    failed = 0
    print(f"{'claim':<84} {'runs':>6} {'broken':>8} {'allowed':>8} {'CPU s':>8}")
    for name in names or CLAIMS:
        before = time.process_time()
        for claim in CLAIMS[name](RUNS):
            failed += not claim.holds
            numbers = f"{claim.runs:>6} {claim.broken / claim.runs:>8.3f} {claim.allowed:>8.3f}"
            seconds, before = time.process_time() - before, time.process_time()
            mark = "" if claim.holds else "  TOO OFTEN"
            print(f"{claim.claim:<84} {numbers} {seconds:>8.0f}{mark}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
