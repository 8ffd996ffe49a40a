"""How well mean risk, its largest token and its spikes predict correctness (paper, appendix A).

In each split one calibrator is fitted for all tasks of a study together, on their pooled
calibration parts, and evaluated on their pooled evaluation parts. The paper does not state this;
its numbers imply it. Mean risk has a Brier score of 0.179 and an AUROC of 0.774, where the average
over tasks of the same score is 0.168 and 0.734 in its main table: values are pooled. And no feature
set comes near the 0.877 that TRACE+, calibrated task by task, has on pooled predictions: the fit is
pooled too.

Its "TRACE local features" are the groups "local entropy" and "local surprisal" of its table of
TRACE+ features, which its ablations remove or keep under these names.
"""

import polars as pl

from trace_workflow.analyses.spike_strata import read_risks
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.estimators.feature_sets import LOCAL_ENTROPY, LOCAL_SURPRISAL
from tracecal.fits.regression import Method, fit
from tracecal.statistics.probability_metrics import brier
from tracecal.statistics.ranking_metrics import single_auroc

LOCAL_FEATURES = (*LOCAL_ENTROPY, *LOCAL_SURPRISAL)

FEATURE_SETS: dict[str, tuple[str, ...]] = {
    "mean_risk": ("mean_risk",),
    "max_token_risk": ("max_token_risk",),
    "spike_gap": ("spike_gap",),
    "mean_risk_and_spike_gap": ("mean_risk", "spike_gap"),
    "trace_local": LOCAL_FEATURES,
}

MODELING = {
    "features": pl.String,
    "split": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}


def analysis(files: StudyFiles, method: Method) -> pl.DataFrame:
    """`spike_modeling` of the pairs, with their scope."""
    answers = read_risks(files, LOCAL_FEATURES)
    return spike_modeling(answers, files.splits(), method).with_columns(**files.scope)


def spike_modeling(answers: pl.DataFrame, splits: pl.DataFrame, method: Method) -> pl.DataFrame:
    """A row per feature set, split and metric ('auroc', 'brier').

    `answers` holds `task`, `example_id`, `correct` and the features; `splits` holds `task`,
    `example_id`, `split` and `part`. Split k joins the tasks' k-th splits.
    """
    joined = splits.join(answers, on=["task", "example_id"], how="inner", validate="m:1")
    joined = joined.sort("split", "task", "example_id")
    rows = []
    for split in splits["split"].unique().sort():
        calibration, evaluation = (
            joined.filter(split=split, part=part) for part in ("calibration", "evaluation")
        )
        y_calibration, y_true = (part["correct"].to_numpy() for part in (calibration, evaluation))
        for name, columns in FEATURE_SETS.items():
            calibrator = fit(calibration.select(columns).to_numpy(), y_calibration, method)
            proba = calibrator.predict(evaluation.select(columns).to_numpy())
            squared_error = brier(proba[None], y_true[None])[0] if len(y_true) else None
            values = {"auroc": single_auroc(proba, y_true), "brier": squared_error}
            rows += [(name, split, *value, len(y_true)) for value in values.items()]
    return pl.DataFrame(rows, schema=MODELING, orient="row")
