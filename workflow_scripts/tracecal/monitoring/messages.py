"""What the monitors say: alarms, warnings and the summary of a state."""

from collections.abc import Iterable, Iterator

from tracecal.calibrator.predictor import Predictor
from tracecal.monitoring.batch import MONITORS
from tracecal.monitoring.database import (
    NOT_KEPT,
    SAME_KEY,
    USED,
    WAITING,
    AddedCounts,
    StateDatabase,
)
from tracecal.monitoring.state import DEPENDENCE_LIMIT, ERROR_MONITOR, State

LONG_NAMES = {"kept": "share kept", "unknown": "share without confidence"}


def long_name(monitor: str) -> str:
    """Return a monitor's name in messages.

    >>> long_name("kept"), long_name("length")
    ('share kept', 'length')
    """
    return LONG_NAMES.get(monitor, monitor)


def alarm_sentences(state: State) -> Iterator[str]:
    """Say each alarm in a sentence."""
    settings = state.settings
    for name, monitor in state.alarms.items():
        if name == ERROR_MONITOR:
            yield (
                f"the error rate among kept answers is above {settings.error_rate:g}, by "
                f"{monitor.alarm} labels (a false alarm has a chance of {settings.chance:g})"
            )
        else:
            yield (
                f"the {long_name(name)} changed: noticed at answer {monitor.alarm:,} (a false "
                f"alarm comes at most once in {settings.answers_per_alarm:,} answers on average)"
            )


def dependence_warning(state: State) -> str | None:
    """Say that neighbours are alike and what to do; None where nothing says so."""
    if state.dependence_alarm is None:
        return None
    signal, alarm = state.dependence_alarm
    chance = len(MONITORS) / DEPENDENCE_LIMIT
    return (
        f"neighbouring answers are alike in the {long_name(signal)}, noticed at answer {alarm:,} "
        f"(a chance of at most {chance:g} where they are not), so that false alarms come more "
        "often than stated: begin a new --state with --one-per and the path of what they share"
    )


def watched_sentence(state: State) -> str:
    """Say how many answers are watched, and what the rate of false alarms assumes."""
    one_per = state.settings.one_per
    unit = "question" if state.settings.by_question else "request"
    unit = f"value of {one_per}" if one_per else unit
    return (
        f"{state.n_watched:,} of {state.n_answers:,} answers watched, one of each {unit}; false "
        "alarms are as rare as stated where these are independent of one another"
    )


def reference_warning(predictor: Predictor) -> str | None:
    """Say what is not noticed without the calibration's answers to compare with."""
    if predictor.reference.probability:
        return None
    return (
        "the calibrator holds no answers to compare with, so that only changes within this "
        "traffic are noticed; calibrate again to change that"
    )


def summary(
    database: StateDatabase, answers: AddedCounts, labels: AddedCounts, changes: Iterable[str] = ()
) -> str:
    """Return what `tracecal watch` prints: counts, evidence, warnings, alarms and `changes`."""
    state = database.state
    lines = [watched_sentence(state), *_count_lines(database.counts(), answers, labels)]
    for name, monitor in state.all_monitors.items():
        if name != ERROR_MONITOR or state.settings.error_rate is not None:
            limit, evidence = state.limit_of(name), monitor.evidence
            rounded = f"{evidence:,.1f}" if evidence < 1e6 else f"{evidence:.1e}"
            lines.append(f"{long_name(name)}: evidence {rounded}, alarm at {limit:,.0f}")
    lines.append(
        "while nothing changes, evidence grows by about 1 with each answer watched, and that of "
        "the error rate stays about 1"
    )
    if warning := dependence_warning(state):
        lines.append(f"WARNING: {warning}")
    alarms = [f"ALARM: {sentence}" for sentence in alarm_sentences(state)]
    return "\n".join([*lines, *(alarms or ["no alarm"]), *changes])


def _count_lines(
    counts: dict[str, int], answers: AddedCounts, labels: AddedCounts
) -> Iterator[str]:
    yield (
        f"{answers.new:,} new answers, {answers.watched:,} of them watched; "
        f"{counts['unknown']:,} in all without confidence; of "
        f"{counts['decided']:,} that have a decision {counts['kept']:,} are kept"
    )
    if answers.repeated or answers.contradicting:
        yield (
            f"left out: {answers.repeated:,} answers whose id came before, "
            f"{answers.contradicting:,} whose id came with other values"
        )
    if any((counts[USED], counts[WAITING], counts[NOT_KEPT], labels.repeated)):
        yield (
            f"labels: {counts[USED]:,} on kept answers, {counts[SAME_KEY]:,} on answers "
            f"whose question or group is judged already, {counts[NOT_KEPT]:,} on answers that were "
            f"not kept, {counts[WAITING]:,} on answers that are still to come; {labels.repeated:,} "
            f"repeat an earlier label, {labels.contradicting:,} contradict one (the first counts)"
        )
