"""A task's decoded answers -> the judged text, whether it is right, and the kind of error."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType

import polars as pl

from tracecal.errors import InputError
from tracecal.label.example import Example, Verdict
from tracecal.label.extract import extract
from tracecal.label.kinds import error_kind
from tracecal.label.rules import RULES, squad_f1
from tracecal.tasks.judging import Judging

LABELS = {
    "example_id": pl.String,
    "prediction": pl.String,
    "correct": pl.Boolean,
    "error_kind": pl.String,
}
Label = tuple[str, str, bool, str | None]
Rules = Mapping[str, Callable[[str, Example], bool | Verdict]]
NONE: Rules = MappingProxyType({})


def label_answers(
    traces: pl.DataFrame, task: pl.DataFrame, spec: Judging, own: Rules = NONE
) -> pl.DataFrame:
    """One row per answer of `traces` (`example_id`, `answer`), sorted by `example_id`.

    Where `traces` has `correct` for an answer, it replaces the task's rule. `own` has the user's
    rules by name. Raises `InputError` where an answer has no example in `task`.
    """
    if (unmatched := traces.join(task, on="example_id", how="anti")).height:
        raise InputError(
            f"{unmatched.height} answer(s), such as {unmatched['example_id'][0]!r}, have no "
            "example in the task: the traces belong to other rows. Generate them again."
        )
    columns = [field.name for field in fields(Example)]
    stated = pl.col("correct") if "correct" in traces.columns else pl.lit(None, pl.Boolean)
    answers = traces.select("example_id", "answer", stated.alias("stated"))
    rows = answers.join(task.select(columns), on="example_id").sort("example_id")
    labels = [
        label_answer(answer, Example(*example), spec, verdict, own)
        for answer, verdict, *example in rows.select("answer", "stated", *columns).iter_rows()
    ]
    return pl.DataFrame(labels, schema=LABELS, orient="row")


def judge(text: str, example: Example, spec: Judging, own: Rules = NONE) -> Verdict:
    """The verdict of the task's correctness rule on an extracted answer."""
    if spec.own_rule is not None:
        return _own_verdict(spec.correctness, own[spec.own_rule], text, example)
    if spec.correctness == "squad_f1":
        return squad_f1(text, example, spec.f1_threshold)
    return RULES[spec.correctness](text, example)


def _own_verdict(name: str, rule: Callable, text: str, example: Example) -> Verdict:
    try:
        verdict = rule(text, example)
    except Exception as error:
        raise InputError(
            f"the rule {name!r} fails on the answer {text[:80]!r} to example "
            f"{example.example_id!r} ({type(error).__name__}: {error})."
        ) from error
    if isinstance(verdict, Verdict):
        return verdict
    if not isinstance(verdict, bool):
        raise InputError(
            f"the rule {name!r} returns {verdict!r}; expected True, False or a Verdict."
        )
    return Verdict(text, verdict)


def label_answer(
    answer: str | None,
    example: Example,
    spec: Judging,
    stated: bool | None = None,
    own: Rules = NONE,
) -> Label:
    """The row of one answer; null counts as empty. A `stated` verdict replaces the rule's."""
    text = extract(answer or "", spec.stop, spec.answer_pattern)
    verdict = judge(text, example, spec, own)
    correct, kind = verdict.correct if stated is None else stated, None
    if not correct:
        kind = error_kind(verdict.prediction, text, example, spec.correctness)
    return example.example_id, verdict.prediction, correct, kind
