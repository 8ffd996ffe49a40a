"""Whether an answer is correct, as files write it."""

from typing import Any

from tracecal.answers.wrong_row import WrongRow

CORRECT = ("C", "correct", "true", "True", "1", 1)
INCORRECT = ("I", "incorrect", "false", "False", "0", 0)
VERDICTS = dict.fromkeys(CORRECT, True) | dict.fromkeys(INCORRECT, False)  # 1 equals True and 1.0


def verdict(value: Any) -> bool | None:
    """Whether an answer is correct; null for null. Raises `WrongRow` for any other value."""
    if value is None:
        return None
    if not isinstance(value, bool | int | float | str) or value not in VERDICTS:
        raise WrongRow(
            f"its verdict {value!r} is neither correct (C, 1, true) nor incorrect (I, 0, false)"
        )
    return VERDICTS[value]


def one_verdict(**values: Any) -> bool | None:
    """The verdict on which all `values` agree; null where all are null. Raises `WrongRow`."""
    verdicts = {name: verdict(value) for name, value in values.items() if value is not None}
    if len(set(verdicts.values())) > 1:
        given = " beside ".join(f"{name}: {values[name]!r}" for name in verdicts)
        raise WrongRow(f"its verdicts contradict each other ({given}); leave one out")
    return next(iter(verdicts.values()), None)
