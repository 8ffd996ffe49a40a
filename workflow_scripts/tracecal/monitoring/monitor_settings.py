"""Settings of the monitors. Each start of a command reads this file: it loads little."""

from pydantic import Field

from tracecal.io.settings import Strict

ANSWERS_PER_ALARM = 10_000  # default: one false alarm in so many answers, on average
ERROR_ALARM_CHANCE = 0.05  # default: chance of ever raising a false alarm about the error rate


class MonitorSettings(Strict):
    """How rare false alarms are, and which answers count as one."""

    answers_per_alarm: int = Field(
        ANSWERS_PER_ALARM,
        ge=100,
        le=10**12,
        description="one false alarm comes in this many answers on average",
    )
    chance: float = Field(
        ERROR_ALARM_CHANCE,
        gt=0,
        lt=1,
        description="chance of ever raising a false alarm about the error rate",
    )
    one_per: str | None = Field(
        None, description="watch one answer of each value at this path of a row"
    )
