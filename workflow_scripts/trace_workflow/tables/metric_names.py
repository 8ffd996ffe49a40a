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
    "AUROC ranks by the raw score where an estimator has one, as in the paper; the direction of "
    "TRACE+ is fitted. AUROC (cal.) ranks by the calibrated probability, whose direction is fitted "
    "for every estimator: a win there, too, is not due to the direction."
)
DEBIASED_NOTE = (
    "ECE (debiased): minus the ECE of exact probabilities with as many answers in the same bins."
)
RISK_NOTE = (
    "The risk of a token is its entropy (nats), mean risk its average over the answer; the spike "
    "gap is the mean over the most uncertain window of four tokens minus mean risk."
)
