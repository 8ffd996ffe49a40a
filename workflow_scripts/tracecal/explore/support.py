"""What an interval says of a difference, in the words of the findings."""


def interval(level: float, low: float, high: float) -> str:
    """The interval of a difference, such as '95% interval -0.010 to +0.030'."""
    return f"{100 * level:g}% interval {low:+.3f} to {high:+.3f}"


def support(low: float | None, high: float | None) -> str:
    """Whether a difference is supported by its interval, a loss, or neither; null: it has none."""
    if low is None or high is None:
        return "no interval"
    if low <= 0 <= high:
        return "not distinguishable from zero"
    return "supported" if low > 0 else "a loss"
