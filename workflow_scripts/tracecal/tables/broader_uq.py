"""TRACE beside estimators of other families, and what each needs beyond a decoded answer."""

from tracecal.tables.estimator_averages import averages_table
from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import Column, Table

REQUIREMENTS = (
    "Req.: E extra inference, S sampled answers, H hidden states, L labelled training, "
    "C held-out calibration labels."
)
EPR = "Mean token entropy is also EPR (Moslonka et al. 2025), taken over the whole vocabulary."


def table(frames: Frames, settings: Settings) -> Table:
    """From `averages`; `settings.more` has by estimator what it `requires`."""
    shown = [EPR] * any(entry.id == "mean_token_entropy" for entry in settings.estimators)
    return averages_table(
        "broader_uq",
        frames,
        settings,
        further={"requires": Column(("requires",), "Req.")},
        notes=[REQUIREMENTS, *shown],
        heading="Method",
    )
