"""Simulate what the tables guarantee and print how often it fails (make validate; minutes)."""

import sys
from collections.abc import Iterator

from simulations import (
    alarms,
    alternatives,
    asking,
    cascades,
    forecasts,
    group_labels,
    guarantees,
    intervals,
    parts,
)
from simulations.claims import Claim

# How many data sets each claim is tried on.
RUNS = 2000


def all_claims(runs: int) -> Iterator[Claim]:
    """Every claim, tried on `runs` data sets."""
    yield from guarantees.claims(runs)
    yield from parts.claims(runs)
    yield from alternatives.claims(runs)
    yield from asking.claims(runs)
    yield from forecasts.claims(runs)
    yield from cascades.claims(runs)
    yield from group_labels.claims(runs)
    yield from intervals.claims(runs)
    yield from intervals.rankings(runs // 5)
    yield from alarms.claims(runs)
    yield from alarms.of_neighbours(runs)


def main() -> int:
    """Print the table; 0 where every claim holds."""
    failed = 0
    print(f"{'claim':<84} {'runs':>6} {'broken':>8} {'allowed':>8}")
    for one in all_claims(RUNS):
        failed += not one.holds
        mark = "" if one.holds else "  TOO OFTEN"
        share = one.broken / one.runs
        print(f"{one.claim:<84} {one.runs:>6} {share:>8.3f} {one.allowed:>8.3f}{mark}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
