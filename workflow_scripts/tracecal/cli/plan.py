"""`tracecal plan`: how many labels a guaranteed error rate needs."""

from typing import Any

import tracecal
from tracecal.cli.command import command


@command(
    "know how many labels a guarantee needs",
    "tracecal plan --calibrator C.json --error-rate 0.05 --picture plan.svg",
    options_of="plan",
    endings={"picture": (".svg",)},
    panels={"Without a calibrator": ("accuracy", "auroc"), "Simulation": ("most", "draws", "seed")},
)
def plan(
    *,
    error_rate: float,
    calibrator: str | None = None,
    confidence: float = 0.9,
    picture: str | None = None,
    **options: Any,
) -> None:
    """
    Parameters
    ----------
    picture : path, optional
        An .svg of the table.
    """
    from tracecal.io.files import write_text

    forecast = tracecal.plan(error_rate, calibrator=calibrator, confidence=confidence, **options)
    if picture:
        write_text(forecast.picture(), picture)
    print(forecast)
