"""Percentages as texts, which are written in one way: `20 %`."""


def percent(share: float, decimals: int = 0) -> str:
    """Format a share in percent; below 1 % with two digits, and above 99 % with one decimal.

    `decimals` are further ones, without zeros at the end.

    >>> percent(0.534), percent(0.0012), percent(0.9964), percent(1)
    ('53 %', '0.12 %', '99.6 %', '100 %')
    >>> percent(0.534, 1), percent(0.2, 1), percent(0.99999, 1)
    ('53.4 %', '20 %', '99.9 %')
    """
    if 0 < share < 0.01:
        return f"{100 * share:.{decimals + 2}g} %"
    if 0.99 < share < 1:
        decimals = max(decimals, 1)
        share = min(share, 1 - 0.1 ** (decimals + 2))
    return f"{round(100 * share, decimals):g} %"


def rate_text(error_rate: float) -> str:
    """Format an error rate in percent, with all digits that the user gave.

    >>> rate_text(0.2), rate_text(0.025)
    ('20 %', '2.5 %')
    """
    return percent(error_rate, 4)


def confidence_text(confidence: float) -> str:
    """The short form of a confidence, in brackets.

    >>> confidence_text(0.9), confidence_text(1 - 0.4 / 3)
    ('(90 % confidence)', '(86.7 % confidence)')
    """
    return f"({percent(confidence, 1)} confidence)"
