"""How soon is it noticed that traffic turned from the calibration's task to another?

TRACE+ is calibrated on the calibration part of a task's first split. Streams draw BEFORE of the
answers that it left, then AFTER of those of the other task, with replacement, so that answers left
stand for all like them and a stream may be longer than they are; as many as are left are drawn
anew as the reference. Where a task turns to itself nothing changes, and every alarm is a false one.
What a split of one task calibrates is drawn from no other task, which may ask about the same city.

Beside the monitors stands a window: at every STEPth answer the two-sample Kolmogorov-Smirnov
statistic of the probabilities of the last WINDOW answers and of the reference, with an alarm above
a limit. No user could set that limit so well: it is the lowest at which the window raises false
alarms in no more of the streams of the task's own answers than the monitors do.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tracecal.analyse.pairs import Pairs, Paths
from tracecal.calibrate.answers import read_answers
from tracecal.calibrate.predict import calibrate_all
from tracecal.calibrate.protocol import Calibrator, Method, from_json
from tracecal.jobs.randomness import seeded
from tracecal.storage.files import read_parquet
from tracecal.watch.monitors import Batch, Promise, Reference
from tracecal.watch.streams import first_alarms

TRACE_PLUS, LENGTH = "trace_plus", "features.log_length"
REPETITIONS, BEFORE, AFTER = 60, 300, 700
WINDOW, STEP = 100, 10
MONITORS, KOLMOGOROV = "monitors", "window"
SHIFT_ALARMS = {
    **dict.fromkeys(("model", "task", "turned_to", "method"), pl.String),
    "repetitions": pl.Int64,
    "false_alarms": pl.Float64,
    "noticed": pl.Float64,
    "delay_median": pl.Float64,
    "delay_90": pl.Float64,
    "error_rate": pl.Float64,
    "kept_error": pl.Float64,
    "first": pl.String,
}


def analysis(
    labels: Paths,
    scores: Paths,
    features: Paths,
    splits: Paths,
    questions: Paths,
    pairs: Pairs,
    **settings: Any,
) -> pl.DataFrame:
    """`shift_alarms` of `pairs`, the tasks of one model, from their files."""
    answers, divided = {}, {}
    for (_, task), split, question, *files in zip(
        pairs, splits, questions, labels, scores, features, strict=True
    ):
        answers[task] = read_answers(files[0], question, *files[1:])
        divided[task] = read_parquet(split, ["example_id", "split", "rank", "part"])
    rows = [row for task in answers for row in from_task(task, answers, divided[task], **settings)]
    model = pairs[0][0]
    return pl.DataFrame([{"model": model} | row for row in rows], schema=SHIFT_ALARMS)


def from_task(
    task: str,
    answers: Mapping[str, pl.DataFrame],
    splits: pl.DataFrame,
    *,
    inputs: Sequence[str],
    method: Method,
    error_rates: Sequence[float],
    confidence: float,
    seed: int,
    repetitions: int = REPETITIONS,
) -> list[dict[str, Any]]:
    """The rows of SHIFT_ALARMS, but for `model`, in which `task` is calibrated and turns to each.

    `answers` of each task are as `read_answers` returns them; `splits` are the
    task's. Answers are kept at the smallest of the `error_rates` for which TRACE+ has a threshold.
    """
    first = splits.filter(pl.col("split") == splits["split"].min())
    calibrated = first.filter(part="calibration").select("example_id")
    fitted = answers[task].join(calibrated, on="example_id", how="semi")
    calibrator, rate, threshold = _fit(
        answers[task], first, inputs, method, error_rates, confidence
    )
    pools = {
        other: _pool(rows.join(fitted, on="group_id", how="anti"), inputs, calibrator, threshold)
        for other, rows in answers.items()
    }
    own, rows, limit, order = pools[task], [], 0.0, [task, *(o for o in answers if o != task)]
    if not len(own["probability"]):
        return []
    for other in order:
        if not len(pools[other]["probability"]):
            continue
        random = seeded("shift_alarms", seed, task, other)
        drawn = [_drawn(own, pools[other], random) for _ in range(repetitions)]
        references = [Reference(known["probability"], known["length"]) for known, _ in drawn]
        streams = [Batch(one["probability"], one["length"], one["kept"]) for _, one in drawn]
        by_monitor = first_alarms(references, streams, Promise(seed=seed))
        places = _earliest(by_monitor)
        distances = np.stack(
            [distance(known["probability"], one["probability"]) for known, one in drawn]
        )
        if other == task:
            limit = _matched(distances, (places > 0).mean())
        raised = np.argmax(distances > limit, axis=1) + 1
        raised = np.where((distances > limit).any(1), raised, 0)
        for name, alarms in ((MONITORS, places), (KOLMOGOROV, raised)):
            told = _told(alarms, [one for _, one in drawn], task == other)
            which = _most_often(by_monitor, places) if name == MONITORS else None
            rows.append(
                {"task": task, "turned_to": other, "method": name, "repetitions": repetitions}
                | told
                | {"error_rate": rate, "first": which}
            )
    return rows


def _fit(
    answers: pl.DataFrame,
    split: pl.DataFrame,
    inputs: Sequence[str],
    method: Method,
    error_rates: Sequence[float],
    confidence: float,
) -> tuple[Calibrator, float | None, float | None]:
    """TRACE+ of a split, the smallest error rate with a threshold, and that; null: none has."""
    # Slow to load, and the table of this analysis reads its names alone.
    from tracecal.calibrate.risk_control import risk_control

    _, found = calibrate_all(answers, split, {TRACE_PLUS: inputs}, method)
    values = {name.split(".", 1)[1]: name for name in inputs}
    rows = answers.select("example_id", "correct", **values)
    control = risk_control(found[TRACE_PLUS], rows, split, error_rates, confidence)
    calibrator = from_json(found[TRACE_PLUS]["splits"][str(control["split"])])
    for entry in control["thresholds"]:
        if entry["threshold"] is not None:
            return calibrator, entry["error_rate"], entry["threshold"]
    return calibrator, None, None


def _pool(
    rows: pl.DataFrame, inputs: Sequence[str], calibrator: Calibrator, threshold: float | None
) -> dict[str, np.ndarray]:
    """What a monitor sees of answers, arrays [n], NaN where unknown; and whether they are wrong."""
    x = rows.select(pl.col(inputs).cast(pl.Float64)).to_numpy()
    known = ~np.isnan(x).any(1)
    probability = np.full(len(x), np.nan)
    probability[known] = calibrator.predict(x[known])
    decided = known if threshold is not None else np.zeros(len(x), dtype=bool)
    return {
        "probability": probability,
        "length": np.rint(np.exp(rows[LENGTH].cast(pl.Float64).to_numpy())),
        "kept": np.where(decided, probability >= (threshold or 0.0), np.nan),
        "wrong": ~rows["correct"].to_numpy(),
    }


def _drawn(
    own: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], random: np.random.Generator
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A reference, and a stream that turns from `own` to `other` answers after BEFORE."""
    sizes = len(own["wrong"]), len(other["wrong"])
    known = random.integers(sizes[0], size=sizes[0])
    before, after = random.integers(sizes[0], size=BEFORE), random.integers(sizes[1], size=AFTER)
    reference = {name: values[known] for name, values in own.items()}
    reference = {
        name: values[~np.isnan(values.astype(float))] for name, values in reference.items()
    }
    stream = {name: np.concatenate([own[name][before], other[name][after]]) for name in own}
    return reference, stream


def distance(reference: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The Kolmogorov-Smirnov statistic [n] of the last WINDOW known values and the reference.

    0 where a window is not full, and between the STEPs.
    """
    found = np.zeros(len(values))
    grid = np.unique(np.append(reference, values[~np.isnan(values)]))
    expected = np.searchsorted(np.sort(reference), grid, side="right") / max(len(reference), 1)
    for end in range(WINDOW, len(values) + 1, STEP):
        last = values[end - WINDOW : end]
        last = np.sort(last[~np.isnan(last)])
        if len(last) and len(reference):
            share = np.searchsorted(last, grid, side="right") / len(last)
            found[end - 1] = np.abs(share - expected).max()
    return found


def _matched(distances: np.ndarray, share: float) -> float:
    """The lowest limit that at most a `share` of the streams exceeds."""
    largest = np.sort(distances.max(1))[::-1]
    return float(largest[min(int(share * len(largest) + 1e-9), len(largest) - 1)])


def _earliest(by_monitor: Mapping[str, np.ndarray]) -> np.ndarray:
    """The place of the first alarm of any monitor [streams]; 0: none."""
    every = np.stack([np.where(places > 0, places, np.inf) for places in by_monitor.values()])
    first = every.min(0)
    return np.where(np.isfinite(first), first, 0).astype(int)


def _most_often(by_monitor: Mapping[str, np.ndarray], first: np.ndarray) -> str | None:
    """The monitor that raised the first alarm in most streams; null: none did."""
    counts = {
        name: int(((places > 0) & (places == first)).sum()) for name, places in by_monitor.items()
    }
    name = max(counts, key=counts.__getitem__)
    return name if counts[name] else None


def _told(
    places: np.ndarray, streams: Sequence[Mapping[str, np.ndarray]], unchanged: bool
) -> dict[str, float | None]:
    """Shares of streams with a false alarm, and noticed; the delay; the error among answers kept.

    A false alarm comes before the turn, or ever where nothing changes. What follows is of the
    streams without one: the share `noticed`, answers until the alarm (null where it is not reached
    within AFTER), and the share of wrong ones among those kept between the turn and the alarm.
    """
    false = (places > 0) & ((places <= BEFORE) | unchanged)
    rest = np.flatnonzero(~false)
    ends = np.where(places[rest] > 0, places[rest], BEFORE + AFTER)
    kept = wrong = 0
    for number, end in zip(rest, ends, strict=True):
        own = streams[number]
        among = own["kept"][BEFORE:end] == 1
        kept += int(among.sum())
        wrong += int(own["wrong"][BEFORE:end][among].sum())
    delays = np.where(places[rest] > 0, places[rest] - BEFORE, np.inf)
    quantiles = [
        float(np.quantile(delays, share, method="inverted_cdf")) if len(delays) else np.inf
        for share in (0.5, 0.9)
    ]
    median, ninety = (None if unchanged or np.isinf(one) else one for one in quantiles)
    return {
        "false_alarms": float(false.mean()),
        "noticed": None if unchanged or not len(rest) else float((places[rest] > 0).mean()),
        "delay_median": median,
        "delay_90": ninety,
        "kept_error": wrong / kept if kept else None,
    }
