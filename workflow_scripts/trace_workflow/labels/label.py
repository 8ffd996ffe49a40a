"""A task's decoded answers -> the judged text, whether it is correct, and the kind of error."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType

import polars as pl

from trace_workflow.config.correctness import CorrectnessSettings
from trace_workflow.labels.rules import RULES, Example, Verdict, extract, squad_f1
from trace_workflow.labels.text import claim, mlqa, numbers_in, only_number
from tracecal.errors import InputError

LOCALIZED = {
    "alias": "entity",
    "squad": "entity",
    "squad_f1": "entity",
    "contains": "entity",
    "truthful": "claim",
    "truthful_rouge": "claim",
}
LONGEST_ENTITY = 40
LONGEST_LOOP = 24
LOOP_TURNS = 4
LONG_WORD = 4

_SORRY = (
    r"(?:(?:i'?m |i am |we are )?sorry[,.]? (?:but )?|unfortunately,? |well,? |leider,? "
    r"|lo siento,? (?:pero )?|抱歉,?|对不起,?)?"
)
_ABSTAINING_BEGINNING = (
    # English
    r"(?:i|we) (?:really )?(?:do not|don'?t|cannot|can'?t|could not|couldn'?t) "
    r"(?:know|answer|say|tell|determine|provide|find|be sure|have (?:enough|any|the|that|access))",
    r"(?:i'?m|i am) (?:not (?:sure|certain|able|aware)|unsure|unable|an? (?:ai|language))",
    r"(?:it is |it's |this is |that is )?(?:cannot|can not|can'?t) (?:be )?(?:answer|determin|sa)",
    r"(?:it is |it's )(?:(?:im|not )possible to (?:say|tell|know|answer|determine)|unclear)",
    r"(?:it is |it's )(?:unknown|not known)",
    r"there is (?:no|not enough|insufficient) (?:information|answer|context)",
    r"as an ai\b",
    r"(?:no|not enough|insufficient) (?:answer|information|context)\b",
    r"not (?:mentioned|stated|specified|given|provided|known|sure)\b",
    r"(?:the )?(?:answer|context|passage|text) (?:is (?:unknown|not)|does not|doesn'?t)\b",
    # German
    r"(?:das )?(?:ich )?(?:weiß|weiss) (?:ich )?(?:es |das )?(?:leider )?nicht",
    r"ich (?:kann|konnte) .{0,40}nicht (?:beantworten|sagen|finden|bestimmen)",
    r"keine (?:ahnung|antwort|angabe|angaben|information|informationen)\b",
    r"(?:es ist )?nicht (?:bekannt|angegeben|erwähnt|beantwortbar)\b",
    # Spanish
    r"(?:yo )?no (?:lo |la )?(?:sé|se|conozco)\b",
    r"no (?:puedo|es posible|se puede) (?:responder|contestar|saber|determinar)",
    r"no (?:hay|tengo|dispongo de) (?:suficiente |ninguna )?(?:información|respuesta)",
    r"(?:sin respuesta|no se (?:sabe|menciona|indica|especifica))\b",
    # Chinese, Vietnamese, Arabic, Hindi
    r"(?:我|我们)?(?:不知道|不清楚|不确定|不太清楚|不了解)",
    r"(?:我|我们)?(?:无法|不能)(?:回答|确定|提供|得知)",
    r"(?:没有|未)(?:提供|提及|提到|足够|答案|相关信息)",
    r"(?:tôi )?không (?:biết|rõ|thể trả lời|có (?:thông tin|câu trả lời))",
    r"(?:أنا )?(?:لا أعرف|لا أعلم|لا أدري|لا يمكنني|غير معروف|لا توجد معلومات)",
    r"(?:मुझे )?(?:नहीं पता|पता नहीं|नहीं मालूम|मालूम नहीं)|मैं नहीं जानता",
)
_ABSTAINING_WHOLE = (
    r"unknown|unanswerable|unclear|n/?a|none|no idea|no comment|i have no (?:idea|comment)|\?+"
    r"|unbekannt|unklar|desconocid[oa]|ni idea|未知|不明|无答案|không rõ|غير معروف|مجهول|अज्ञात"
)
_ABSTAINING = re.compile(
    rf"{_SORRY}(?:(?:{'|'.join(_ABSTAINING_BEGINNING)})|(?:{_ABSTAINING_WHOLE})[\s.!。]*$)",
    re.IGNORECASE,
)
_STUTTER = re.compile(r"([^\d\s])\1{11}")


def error_kind(prediction: str, answer: str, example: Example, rule: str) -> str:
    """The kind of error of a wrong answer, by the rules in the module's docstring.

    `answer` is its whole extracted text, `prediction` the part that was judged.
    """
    if not has_substance(answer) or is_incoherent(answer, example.language):
        return "global"
    if rule == "numeric":
        # `prediction` may be a number word, which was judged as a number.
        return "number" if numbers_in(prediction) or only_number(prediction) else "global"
    if abstains(answer) or is_off_topic(answer, example, rule):
        return "global"
    if rule == "contains":
        numeric = all(map(numbers_in, (prediction, *example.references)))
        return "number" if numeric else "entity"
    localized = LOCALIZED.get(rule, "entity")
    if localized == "entity" and _is_numeric(prediction, example.references):
        return "number"
    return localized


def has_substance(text: str) -> bool:
    """Whether any letter or digit of any script is in `text`."""
    return any(character.isalnum() for character in text)


def abstains(text: str) -> bool:
    """Whether `text` declines to answer, in English, German, Spanish, Chinese or a few others."""
    plain = " ".join(text.replace("’", "'").replace("，", ",").split()).strip(" \"'*_-([")
    return _ABSTAINING.match(plain) is not None


def is_incoherent(text: str, language: str = "en") -> bool:
    """Whether some words repeat `LOOP_TURNS` times in a row, over half of `text` or more."""
    if _STUTTER.search(text):
        return True
    words = mlqa(text, "zh" if language.startswith("zh") else "none").split()
    for period in range(1, min(LONGEST_LOOP, len(words) // LOOP_TURNS) + 1):
        run = longest = 0
        for word, earlier in zip(words[period:], words, strict=False):
            run = run + 1 if word == earlier else 0
            longest = max(longest, run)
        looped = longest + period
        if looped >= LOOP_TURNS * period and 2 * looped >= len(words):
            return True
    return False


def is_off_topic(text: str, example: Example, rule: str) -> bool:
    """Whether a claim shares no long word with its example, or an entity is a long text."""
    words = claim(text, example.language)
    if LOCALIZED.get(rule) != "claim":
        return len(words) > LONGEST_ENTITY
    topic = [example.question, *example.references, *example.distractors]
    topic_words = {word[:LONG_WORD] for part in topic for word in claim(part, example.language)}
    long = [word for word in words if len(word) >= LONG_WORD]
    return len(long) >= 5 and not any(word[:LONG_WORD] in topic_words for word in long)


def _is_numeric(prediction: str, references: Sequence[str]) -> bool:
    return all(only_number(text) is not None for text in (prediction, *references))


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
    """One row per answer of `traces` (`example_id`, `answer`), sorted by `example_id`.

    Where `traces` has `correct` for an answer, it replaces the task's rule. `custom` has the user's
    rules by name. Where `spec` has a rule for each part, `task` has the column `part`. Raises
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
    """The labels of answers of which each part has a rule of its own."""
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
    spec: CorrectnessSettings,
    stated: bool | None = None,
    custom: Rules = NO_RULES,
) -> Label:
    """The row of one answer; null counts as empty. A `stated` verdict replaces the rule's."""
    text = extract(answer or "", spec.stop, spec.answer_pattern)
    verdict = judge(text, example, spec, custom)
    correct, kind = verdict.correct if stated is None else stated, None
    if not correct:
        kind = error_kind(verdict.prediction, text, example, spec.correctness)
    return example.example_id, verdict.prediction, correct, kind
