"""Settings of the monitors. Each start of a command reads this file: it loads little."""

from pydantic import Field, model_validator

from tracecal.io.settings import Strict

# Unless others are stated: answers in which a monitor may raise a false alarm once on average, and
# the chance of a false alarm about the error rate.
PER_ALARM, CHANCE = 10_000, 0.05
SHORTEST = 100  # blocks in which a false alarm is allowed once on average


class Watching(Strict):
    """How often false alarms are allowed, and what is watched as one."""

    answers_per_alarm: int = Field(
        PER_ALARM,
        ge=100,
        description="answers with one false alarm on average",
    )
    chance: float = Field(
        CHANCE, gt=0, lt=1, description="of ever raising a false alarm about the error rate"
    )
    block: int = Field(
        1,
        ge=1,
        description="answers watched as one, where neighbours are alike",
    )
    one_per: str | None = Field(
        None,
        description="watch one answer of each value at this path of a row",
    )

    @model_validator(mode="after")
    def _raises_no_alarm_at_once(self) -> "Watching":
        if self.block > self.answers_per_alarm / SHORTEST:
            raise ValueError(
                f"--block {self.block} is too long: at most --answers-per-alarm / {SHORTEST}, "
                f"{self.answers_per_alarm // SHORTEST}"
            )
        return self
