"""`tracecal watch`: the monitors over files of answers and labels, with a state that goes on."""

import argparse
from collections.abc import Callable
from pathlib import Path

from tracecal.answers.read import Answers, listed
from tracecal.calibration.calibrator import load, vocabulary_for
from tracecal.cli.options import add_answers, add_calibrator, add_options, add_task, read_given
from tracecal.cli.output import printable
from tracecal.errors import InputError
from tracecal.io.input_files import MOST_BYTES, parsed_json, require_regular
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse
from tracecal.monitoring.monitors import ERROR, Batch
from tracecal.monitoring.traffic import (
    NOT_KEPT,
    SAME_KEY,
    USED,
    WAITING,
    Added,
    Store,
    Watching,
    alike,
    choice_of,
    identity,
    key_of,
    promised,
    sentences,
    watched,
    went_in,
)


def add_watch(command: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Add the command by the function with which the others are added."""
    watch = command(
        "watch",
        "say when traffic is no longer like the calibration's",
        "Monitors may be looked at after every answer; their state goes on where it was. They take "
        "it that the answers watched are independent of one another: --one-per and --block are for "
        "traffic whose neighbours are alike.",
    )
    add_calibrator(watch)
    watch.add_argument("--state", required=True, help="SQLite file of the monitors, made if absent")
    watch.add_argument("--labels", help="JSON Lines with id and correct, of some of the answers")
    watch.add_argument("--estimator", help="one of the calibrator's file")
    add_task(watch)
    add_options(watch, Watching, Watching.model_fields)
    add_answers(watch)

    def run(args: argparse.Namespace) -> None:
        pass

        run_watch(args)

    watch.set_defaults(run=run_watch, wrong_rows="skip")


CHUNK = 500  # answers of a transaction


def run_watch(args: argparse.Namespace) -> None:
    """Watch the answers, then the labels, and print what is known."""
    given = {name: getattr(args, name) for name in Watching.model_fields}
    watching = parse(Watching, given, "options")
    fitted = load(args.calibrator, args.estimator)
    size = int(args.vocabulary) if str(args.vocabulary).isdecimal() else None
    one_per = watching.one_per
    answers = read_given(
        args,
        vocabulary_for(fitted.fitted_on, size),
        lambda name, row: (choice_of(name, row), key_of(row, one_per)),
    )
    if one_per is not None:
        _require_keys([key for _, key in answers.rows], one_per)
    rate = args.error_rate
    batch = watched(answers.frame, fitted, rate, args.task or answers.metadata.get("task"))
    labels, wrong = read_labels(args.labels) if args.labels else ([], [])
    if wrong:
        LOGGER.warning("%s: left out %s", args.labels, listed(wrong))
    if watching.block > 1:
        LOGGER.warning(
            "means of --block %d answers have no reference: what was unlike the calibration from "
            "the start is not noticed",
            watching.block,
        )
    elif not fitted.reference.probability:
        LOGGER.warning(
            "the calibrator holds no answers to compare with, so that only changes within this "
            "traffic are noticed; calibrate again to change that"
        )
    promise = promised(fitted, watching, rate)
    store = Store(args.state, identity(fitted, rate), promise, fitted.reference)
    try:
        told = _watched(store, answers, batch)
        judged = store.add_labels(labels)
        print(printable(summary(store, told, judged)))
    finally:
        store.close()


def _require_keys(keys: list[str | None], one_per: str) -> None:
    """Raise `InputError` where no row has a key, and say of how many that is so."""
    if lacking := keys.count(None):
        told = f"have nothing at --one-per {one_per}"
        if lacking == len(keys):
            raise InputError(f"all {lacking} answers {told}: name a path of their rows.")
        LOGGER.warning("%d answers %s: each counts by itself", lacking, told)


def _watched(store: Store, answers: Answers, batch: Batch) -> Added:
    total, ids = Added(), answers.frame["example_id"].to_list()
    keys = [key or request for (request, _), key in answers.rows]
    choices = [number for (_, number), _ in answers.rows]
    for first in range(0, len(ids), CHUNK):
        part = slice(first, first + CHUNK)
        added = store.add_answers(ids[part], batch[part], keys[part], choices[part])
        for name, count in vars(added).items():
            setattr(total, name, getattr(total, name) + count)
    return total


def read_labels(path: str | Path) -> tuple[list[tuple[str, bool]], list[str]]:
    """Pairs of an answer's id and whether it is right, and why other lines are invalid.

    JSON Lines with `id` (or `example_id`) and `correct`; lines whose `correct` is null are unsure
    and count as invalid.
    """
    require_regular(path, MOST_BYTES)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as labels ({error}).") from error
    labels, wrong = [], []
    for place, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parsed_json(line)
            name = row.get("id", row.get("example_id"))
            if not isinstance(name, str | int) or not isinstance(row.get("correct"), bool):
                raise ValueError("expected 'id', and 'correct' that is true or false")
            labels.append((str(name), row["correct"]))
        except (ValueError, AttributeError) as error:
            wrong.append(f"line {place}: {error}")
    return labels, wrong


def summary(store: Store, told: Added, judged: Added) -> str:
    """What is printed at the end."""
    state, counts = store.state, store.counts()
    lines = [
        went_in(state),
        f"{told.new:,} answers new, {told.watched:,} of them watched; {counts['unknown']:,} in all "
        f"without confidence; {counts['kept']:,} of {counts['decided']:,} decided ones kept",
    ]
    if told.repeated or told.contradicting:
        lines.append(
            f"left out: {told.repeated:,} answers of known ids, {told.contradicting:,} of known "
            "ids with other values"
        )
    if any((counts[USED], counts[WAITING], counts[NOT_KEPT], judged.repeated)):
        lines.append(
            f"labels: {counts[USED]:,} of kept answers, {counts[SAME_KEY]:,} of others that share "
            f"what one judged before has, {counts[NOT_KEPT]:,} of answers that were not kept, "
            f"{counts[WAITING]:,} of answers not seen yet; {judged.repeated:,} given before, "
            f"{judged.contradicting:,} that contradict an earlier one, which counts"
        )
    limit = state.promise.limit
    for name, one in state.monitors.items():
        lines.append(f"{name}: evidence {one.total:,.3g} of {limit:,.3g}")
    if state.promise.error_rate is not None:
        enough = 1 / state.promise.chance
        lines.append(f"{ERROR}: evidence {state.errors.total:,.3g} of {enough:,.3g}")
    lines += [f"WARNING: {warning}"] if (warning := alike(store)) else []
    lines += [f"ALARM: {one}" for one in sentences(state)] or ["no alarm"]
    return "\n".join(lines)
