"""The share of the chosen option among the options, from the alternatives of its token.

`--options A B C D` reads it as a further column of each answer: the probability of the option that
was chosen, over that of all options. Its path, `options:A,B,C,D`, stands in the calibrator's file.
"""

import math
from collections.abc import Sequence

from tracecal.answers.step import Step, plain_text

NAME, PREFIX = "option_share", "options:"


def options_path(options: Sequence[str]) -> dict[str, str]:
    """The further column of these options and its path; empty without options.

    >>> options_path(["A", "B"])
    {'option_share': 'options:A,B'}
    """
    return {NAME: PREFIX + ",".join(options)} if options else {}


def option_share(steps: Sequence[Step], path: str) -> float | None:
    """Return the share of the option that the last option token chose; None without one."""
    options = {option.strip() for option in path.removeprefix(PREFIX).split(",")}
    for step in reversed(steps):
        chosen = (step.text or "").strip()
        if chosen in options and step.logprob is not None and step.top:
            likeliest = {chosen: step.logprob}
            for key, logprob in step.top:
                text = plain_text(key)
                if text in options and text != chosen and logprob is not None:
                    likeliest[text] = max(logprob, likeliest.get(text, -math.inf))
            return math.exp(step.logprob) / sum(map(math.exp, likeliest.values()))
    return None
