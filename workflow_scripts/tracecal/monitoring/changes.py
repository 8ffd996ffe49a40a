"""What changed before an alarm: where it began, what was before and since, and what to do."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
import scipy

from tracecal.calibrator.schema import Reference
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.database import USED, StateDatabase
from tracecal.monitoring.state import ERROR_MONITOR
from tracecal.statistics.percentages import percent

WATCHED = "SELECT id, place, probability, length, kept FROM answers WHERE watched ORDER BY place"
JUDGED = "SELECT count(*), sum(1 - correct) FROM labels WHERE used = ?"
ADVICE = (
    "to do: find out what changed there (model, prompt, users), calibrate on labelled answers from "
    "then on, and begin a new --state"
)


class WatchedFile(NamedTuple):
    """A source of answers, their ids, and when they were given (seconds of Unix time or None)."""

    name: str
    ids: Sequence[str]
    created: pl.Series


def change_lines(
    database: StateDatabase, reference: Reference, file: WatchedFile | None
) -> Iterator[str]:
    """Three lines on the first alarm: what changed, where in which file, and what to do."""
    state = database.state
    name = next(iter(state.alarms), None)
    if name is None:
        return
    if name == ERROR_MONITOR:
        n_judged, n_wrong = database.query(JUDGED, (USED,))[0]
        yield (
            f"changed: {n_wrong:,} of {n_judged:,} judged answers that were kept are wrong "
            f"({percent(n_wrong / n_judged)})"
        )
    else:
        ids, places, *columns = zip(*database.query(WATCHED), strict=True)
        watched = Batch(*np.array(columns, dtype=float))
        begin = find_begin(name, watched, reference)
        yield f"changed: {describe_change(name, watched, reference, begin, places[begin])}"
        yield f"where: {describe_place(ids[begin], file)}"
    yield ADVICE


def find_begin(name: str, watched: Batch, reference: Reference) -> int:
    """The first answer since a signal differs most, by a CUSUM of its ranks; 0: from the first."""
    earlier = np.array(getattr(reference, name, ()), dtype=float)
    values = np.concatenate([earlier, watched.signals[name]])
    is_known = ~np.isnan(values)
    rank = np.zeros(len(values))
    rank[is_known] = scipy.stats.rankdata(values[is_known])
    rank[is_known] -= rank[is_known].mean()
    n_before = np.cumsum(is_known)[:-1]
    n_since = is_known.sum() - n_before
    distance = np.abs(np.cumsum(rank)[:-1]) / np.sqrt(np.maximum(n_before * n_since, 1))
    first = max(len(earlier), 1)  # answers of the calibration came before
    return first + int(np.argmax(distance[first - 1 :])) - len(earlier)


def describe_change(name: str, watched: Batch, reference: Reference, begin: int, nth: int) -> str:
    """What was before an answer, the `nth` of the traffic, and since."""
    before, since = watched[:begin], watched[begin:]
    then = f"before answer {nth:,}"
    if not begin:
        before = Batch(*map(np.array, (reference.probability, reference.length, ())))
        then = "in the calibration"
    facts = [
        f"mean probability {_mean(before.probability)} {then}, {_mean(since.probability)} since"
    ]
    if name == "length":
        facts.append(f"{_mean(before.length)} tokens on average, {_mean(since.length)} since")
    if name == "unknown":
        shares = (percent(np.isnan(part.probability).mean()) for part in (before, since))
        facts.append("{} without confidence, {} since".format(*shares))
    decisions = [part.keep[~np.isnan(part.keep)] for part in (before, since)]
    if all(map(len, decisions)):
        facts.append("{} kept, {} since".format(*(percent(part.mean()) for part in decisions)))
    return "; ".join(facts)


def _mean(values: np.ndarray) -> str:
    finite = values[~np.isnan(values)]
    return f"{finite.mean():.3g}" if len(finite) else "none"


def describe_place(example_id: str, file: WatchedFile | None) -> str:
    """The file and the id of an answer, with the dates of the file where its rows have times."""
    if file is None or example_id not in file.ids:
        return f"answer {example_id!r}, watched in an earlier call"
    position = f"{file.name}, answer {example_id!r}"
    when = pl.from_epoch(file.created.cast(pl.Int64)).dt.strftime("%Y-%m-%d %H:%M")
    if (date := when[[*file.ids].index(example_id)]) is None:
        return position
    return f"{position} of {date} UTC; the file is from {when.min()} to {when.max()}"
