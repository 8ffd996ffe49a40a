"""The kind of error of a wrong answer: a number, an entity, a claim, or the whole answer."""

import re

from trace_workflow.correctness.normalisation import claim_words, normalise_mlqa
from trace_workflow.correctness.numbers import numbers_in, only_number
from trace_workflow.correctness.verdict import Example

LOCALIZED = {
    "alias": "entity",
    "squad": "entity",
    "squad_f1": "entity",
    "contains": "entity",
    "truthful": "claim",
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
    """The kind of error of a wrong answer: 'number', 'entity', 'claim' or 'global'.

    `answer` is the extracted text, `prediction` the part that was judged.
    """
    has_substance = any(character.isalnum() for character in answer)  # in any script
    if not has_substance or is_incoherent(answer, example.language):
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
    texts = (prediction, *example.references)
    if localized == "entity" and all(only_number(text) is not None for text in texts):
        return "number"
    return localized


def abstains(text: str) -> bool:
    """Whether `text` declines to answer, in English, German, Spanish, Chinese or a few others."""
    plain = " ".join(text.replace("’", "'").replace("，", ",").split()).strip(" \"'*_-([")
    return _ABSTAINING.match(plain) is not None


def is_incoherent(text: str, language: str = "en") -> bool:
    """Whether some words repeat `LOOP_TURNS` times in a row, over half of `text` or more."""
    if _STUTTER.search(text):
        return True
    words = normalise_mlqa(text, "zh" if language.startswith("zh") else "none").split()
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
    words = claim_words(text, example.language)
    if LOCALIZED.get(rule) != "claim":
        return len(words) > LONGEST_ENTITY
    topic = [example.question, *example.references, *example.distractors]
    topic_words = {
        word[:LONG_WORD] for part in topic for word in claim_words(part, example.language)
    }
    long = [word for word in words if len(word) >= LONG_WORD]
    return len(long) >= 5 and not any(word[:LONG_WORD] in topic_words for word in long)
