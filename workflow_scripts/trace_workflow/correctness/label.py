"""The labels of a task's answers: the judged text, whether it is correct, and the kind of error."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType

import polars as pl

from trace_workflow.config.correctness import CorrectnessSettings
from trace_workflow.config.prompting import until_stop
from trace_workflow.correctness.error_kinds import error_kind
from trace_workflow.correctness.rules import RULES, squad_f1
from trace_workflow.correctness.verdict import Example, Verdict
from tracecal.errors import InputError
from tracecal.io.expressions import matches

LABELS = {
    "example_id": pl.String,
    "prediction": pl.String,
    "correct": pl.Boolean,
    "error_kind": pl.String,
}
EXAMPLE_COLUMNS = [field.name for field in fields(Example)]
Label = tuple[str, str, bool, str | None]
Rules = Mapping[str, Callable[[str, Example], bool | Verdict]]
NO_RULES: Rules = MappingProxyType({})


def label_answers(
    traces: pl.DataFrame, task: pl.DataFrame, spec: CorrectnessSettings, custom: Rules = NO_RULES
) -> pl.DataFrame:
    """Label the answers of `traces` (`example_id`, `answer`): a row each, sorted by `example_id`.

    A verdict in the column `correct` of `traces` replaces the task's rule. `custom` maps a name to
    the user's rule. Where `spec` has a rule for each part, `task` has the column `part`. Raises
    `InputError` where an answer has no example in `task`.
    """
    if isinstance(spec.correctness, dict):
        return _label_by_part(traces, task, spec, custom)
    if (unmatched := traces.join(task, on="example_id", how="anti")).height:
        raise InputError(
            f"{unmatched.height} answer(s), such as {unmatched['example_id'][0]!r}, have no "
            "example in the task: the traces belong to other rows. Generate them again."
        )
    stated = pl.col("correct") if "correct" in traces.columns else pl.lit(None, pl.Boolean)
    answers = traces.select("example_id", "answer", stated.alias("stated"))
    rows = answers.join(task.select(EXAMPLE_COLUMNS), on="example_id").sort("example_id")
    labels = [
        label_answer(answer, Example(*example), spec, verdict, custom)
        for answer, verdict, *example in rows.select(
            "answer", "stated", *EXAMPLE_COLUMNS
        ).iter_rows()
    ]
    return pl.DataFrame(labels, schema=LABELS, orient="row")


def _label_by_part(
    traces: pl.DataFrame, task: pl.DataFrame, spec: CorrectnessSettings, custom: Rules
) -> pl.DataFrame:
    """The labels of parts of answers, each part judged by its own rule."""
    labels = [
        label_answers(
            traces.join(examples, on="example_id", how="semi"), examples, spec.of_part(part), custom
        )
        for (part,), examples in task.partition_by("part", as_dict=True).items()
    ]
    return pl.concat(labels).sort("example_id")


def judge(
    text: str, example: Example, spec: CorrectnessSettings, custom: Rules = NO_RULES
) -> Verdict:
    """The verdict of the task's correctness rule on an extracted answer."""
    if spec.custom_rules:
        return _custom_verdict(spec.correctness, custom[spec.custom_rules[0]], text, example)
    if spec.correctness == "squad_f1":
        return squad_f1(text, example, spec.f1_threshold)
    return RULES[spec.correctness](text, example)


def _custom_verdict(name: str, rule: Callable, text: str, example: Example) -> Verdict:
    try:
        verdict = rule(text, example)
    except (Exception, SystemExit) as error:
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
    spec: CorrectnessSettings,
    stated: bool | None = None,
    custom: Rules = NO_RULES,
) -> Label:
    """The row of an answer; None counts as an empty one. A `stated` verdict replaces the rule's."""
    text = extract(answer or "", spec.stop, spec.answer_pattern)
    verdict = judge(text, example, spec, custom)
    correct, kind = verdict.correct if stated is None else stated, None
    if not correct:
        kind = error_kind(verdict.prediction, text, example, spec.correctness)
    return example.example_id, verdict.prediction, correct, kind


def extract(answer: str, stop: Iterable[str] = (), pattern: str | None = None) -> str:
    """The answer before its earliest stop string, narrowed to group 1 of `pattern`'s last match.

    Without a match the whole answer counts: a model that ignores the format may still be correct.
    An answer that begins with a stop string is empty. Whitespace at the ends is removed. Raises
    `InputError` where the pattern takes too long.
    """
    answer = until_stop(answer, stop)
    if pattern is not None and (all_matches := list(matches(pattern, answer))):
        answer = all_matches[-1].group(1) or ""
    return answer.strip()
