"""Metrics as tables name them, the direction in which each is better, and sentences about them."""

from trace_workflow.tables.table import Better

DEBIASED_ECE = "ece_debiased"
METRIC_NAMES = {
    "brier": "Brier",
    "ece": "ECE",
    DEBIASED_ECE: "ECE (debiased)",
    "auroc": "AUROC",
    "auroc_calibrated": "AUROC (cal.)",
}
BETTER: dict[str, Better] = {
    "brier": "lower",
    "ece": "lower",
    "auroc": "higher",
    "auroc_calibrated": "higher",
}
METRICS = ("brier", "auroc")
# A table that claims wins gives the AUROC of calibrated probabilities beside that of raw scores.
CLAIMED = (*METRICS, "auroc_calibrated")
DIRECTION_NOTE = (
    "AUROC ranks by the raw score where an estimator has one, as the paper does; the direction of "
    "TRACE+ is fitted. AUROC (cal.) ranks by every estimator's calibrated probability, whose "
    "direction is fitted for all alike: only a win there too cannot be due to the direction."
)
DEBIASED_NOTE = (
    "ECE (debiased): less what exact probabilities would have on as many answers in the same bins."
)
RISK_NOTE = (
    "A token's risk is its entropy (nats), mean risk its average over the answer; the spike gap is "
    "how far the mean of its most uncertain window of four tokens exceeds that average."
)
