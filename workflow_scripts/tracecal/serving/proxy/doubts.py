"""Why the tokens of a server's answer may not be those of the answer."""

import re
from collections.abc import Sequence
from typing import Any

from tracecal.answers.raw_answer import UNDECODED
from tracecal.answers.record import Record
from tracecal.calibrator.trace_kinds import NEXT_QUESTION
from tracecal.serving.proxy.json_bodies import Object


def token_doubts(answer: Object, record: Record, request: Object) -> list[str]:
    """Say why the tokens of an answer of one choice, `record` as read, may not be its own."""
    if record.reasoning in ("within", "alone"):
        return []  # the tokens are not those of the answer alone
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and isinstance(choices[0], dict) else {}
    stops = request.get("stop") or []
    stops = [*(stops if isinstance(stops, list) else [stops]), choice.get("stop_reason")]
    if not is_spelled(record.answer or "", record.tokens or (), stops):
        return ["the tokens with log-probabilities do not spell the answer"]
    if re.search(NEXT_QUESTION, record.answer or ""):
        return ["the answer runs on into another question, whose tokens count as its own"]
    return []


def is_spelled(text: str, tokens: Sequence[str | None], stops: Sequence[Any]) -> bool:
    """Return whether tokens spell a text, perhaps with a stop token or stop string behind it.

    Blanks at either end do not count, as servers strip them. Where tokens are parts of characters
    only the other tokens are compared.

    >>> is_spelled("Paris", ["Par", "is", "\\n"], ["\\n"]), is_spelled("Paris", ["Rome"], [])
    (True, False)
    """
    if not tokens or None in tokens:
        return False
    spelled, text = "".join(tokens).lstrip(), text.strip()
    if spelled.startswith(text):
        rest = spelled.removeprefix(text)
        is_stopped = any(isinstance(stop, str) and stop and stop in rest for stop in stops)
        return rest.strip() in ("", tokens[-1].strip()) or is_stopped
    return UNDECODED in spelled and _is_spelled_around(spelled, text)


def _is_spelled_around(spelled: str, text: str) -> bool:
    """Return whether what stands between parts of characters is in the text, in the same order."""
    end, n_parts = 0, spelled.count(UNDECODED)
    *fragments, last = spelled.split(UNDECODED)
    for fragment in fragments:
        start = text.find(fragment, end, end + n_parts + len(fragment))
        if start < 0:
            return False
        end = start + len(fragment)
    rest = text[end:]
    return any(last.startswith(rest[skipped:]) for skipped in range(n_parts + 1))
