"""Random edits, kills and flipped bits, and after each a comparison with a clean run.

make soak [MINUTES=30] [ROUNDS=1000000] [SEED=1]

A seed takes three of what a small run depends on (code, configuration, rows, weights in place), so
that eight clean runs serve all its rounds. Each round changes one or two of them and does
one of six things: nothing more; kills the run at a random moment; edits code while it runs and
puts it back; flips a bit of a result; brings the results before the change back over those after
it; lets Snakemake touch the results before it. Then the run is brought to its end with --verify and
by what its messages say, and every result is compared, by its digest, with those of a clean run of the same state. A result
that differs is wrong or stale, unless it is the flipped one that nothing has read: then a reader
must refuse it. Before that a decoding step and a proxy under traffic are killed at random moments.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from support import decoding_attempt
from support import kills as under_traffic
from support.checkout import killed
from tracecal.errors import InputError
from tracecal.io.files import read_checked, read_sealed
from workflow.small import EDITS, RESULTS, START, Small

ROUNDS = ("change", "kill", "edit while it runs", "flip", "restore", "touch")


def changed(state: dict[str, int], varied: list[str], rng: random.Random) -> dict[str, int]:
    """A state that differs in one or two things of those that are `varied`."""
    names = rng.sample(varied, rng.choice((1, 1, 2)))
    return state | {name: 1 - state[name] for name in names}


def disturb(small: Small, kind: str, rng: random.Random) -> str | None:
    """Do what a round of this kind does before its run may end; the file whose bit was flipped."""
    if kind == "kill":
        process = small.begin()
        pause(process, rng.uniform(1, 60))
        killed(process)
    elif kind == "edit while it runs":
        process, name = small.begin(), rng.choice(sorted(EDITS))
        pause(process, rng.uniform(1, 40))
        edited = small.state | {name: 1 - small.state[name]}
        before = dict(small.state)
        small.become(edited)
        pause(process, rng.uniform(0, 20))
        small.become(before)
        process.wait()
    elif kind == "touch":
        small.run("--touch")
    elif kind == "flip":
        name = rng.choice([name for name in small.results() if not name.endswith(".html")])
        path = small.root / RESULTS / name
        content = bytearray(path.read_bytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        return name
    return None


def keep(small: Small) -> Path:
    """A copy of the results as they are, as a backup takes it."""
    backup = small.root / "backup"
    shutil.rmtree(backup, ignore_errors=True)
    shutil.copytree(small.root / RESULTS, backup, symlinks=True)
    return backup


def bring_back(small: Small, backup: Path) -> None:
    """Put the results of the backup in place; Snakemake's records stay those of later ones."""
    shutil.rmtree(small.root / RESULTS)
    shutil.copytree(backup, small.root / RESULTS, symlinks=True)


def pause(process: subprocess.Popen, seconds: float) -> None:
    """Let a run go on for so long, or to its end where that comes first."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def result_of(path: Path) -> Path:
    """The result that a file is, or whose checksum it is."""
    if path.suffix == ".sha256":
        return path.with_name(path.name[1:].removesuffix(".sha256"))
    return path


def refused(path: Path) -> bool:
    """Whether a damaged result is refused by a reader."""
    try:
        read_sealed(path) if path.suffix in (".arrow", ".parquet") else read_checked(path)
    except InputError:
        return True
    return False


def kills(folder: Path, seed: int) -> None:
    """A decoding step and a proxy that watches, killed again and again; the suite does it twice."""
    with decoding_attempt.starting() as start:
        ended = decoding_attempt.killed(
            start, folder / "decoding", decoding_attempt.KILLS, decoding_attempt.RESUMED
        )
    print(f"decoding killed {ended} times: sound", flush=True)
    own = folder / "proxy"
    own.mkdir()
    print(f"proxy: {under_traffic.run(20, own, seed)}", flush=True)


def soak(folder: Path, minutes: float, rounds: int, seed: int) -> Counter:
    """Rounds until one of the limits; how many there were of each kind, and of wrong results."""
    rng, counts = random.Random(seed), Counter()
    varied = rng.sample(sorted(START), 3)
    print(f"seed {seed} varies {', '.join(varied)}", flush=True)
    small, clean = Small(folder / "own"), Small(folder / "clean")
    known: dict[str, dict[str, str]] = {}
    small.finish()
    end = time.monotonic() + 60 * minutes
    while sum(counts[kind] for kind in ROUNDS) < rounds and time.monotonic() < end:
        kind = rng.choice(ROUNDS)
        before = keep(small) if kind == "restore" else None
        small.become(changed(dict(small.state), varied, rng))
        if before:
            small.finish()
            bring_back(small, before)
        flipped = disturb(small, kind, rng)
        small.finish("--verify")
        key = json.dumps(small.state, sort_keys=True)
        if key not in known:
            clean.forget()
            clean.become(small.state)
            clean.finish()
            known[key] = clean.results()
        own = small.results()
        wrong = {name for name in known[key] | own if own.get(name) != known[key].get(name)}
        if flipped in wrong and refused(small.root / result_of(RESULTS / flipped)):
            wrong -= {flipped}
            small.run("--force", str(result_of(RESULTS / flipped)))
        counts[kind] += 1
        counts["wrong"] += bool(wrong)
        print(
            f"{sum(counts[k] for k in ROUNDS)} {kind} {key}: {sorted(wrong) or 'sound'}", flush=True
        )
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kills(Path(folder), given.seed)
        counts = soak(Path(folder), given.minutes, given.rounds, given.seed)
    print(", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items())))
    sys.exit(bool(counts["wrong"]))
