"""Verdicts: whether an answer is correct, in the words and numbers that files use."""

from typing import Any

from tracecal.errors import WrongRow

CORRECT = ("C", "correct", "true", "True", "1", 1)
INCORRECT = ("I", "incorrect", "false", "False", "0", 0)
VERDICTS = dict.fromkeys(CORRECT, True) | dict.fromkeys(INCORRECT, False)  # 1 equals True and 1.0


def parse_verdict(value: Any) -> bool | None:
    """Whether an answer is correct; None for None. Raises `WrongRow` for any other value.

    >>> parse_verdict("C"), parse_verdict(0)
    (True, False)
    """
    if value is None:
        return None
    if not isinstance(value, bool | int | float | str) or value not in VERDICTS:
        raise WrongRow(
            f"its verdict {value!r} is neither correct (C, 1, true) nor incorrect (I, 0, false)"
        )
    return VERDICTS[value]


def agreed_verdict(**values: Any) -> bool | None:
    """The verdict on which all `values` agree; None where all are None. Raises `WrongRow`."""
    verdicts = {name: parse_verdict(value) for name, value in values.items() if value is not None}
    if len(set(verdicts.values())) > 1:
        contradiction = " beside ".join(f"{name}: {values[name]!r}" for name in verdicts)
        raise WrongRow(f"its verdicts contradict each other ({contradiction}); leave one out")
    return next(iter(verdicts.values()), None)
