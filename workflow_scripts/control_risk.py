"""Add guarantees to a calibrator: ranked by its default fit or TRACE+."""

from trace_job import job
from trace_workflow.analyses.labelled_answers import read_labelled_answers, with_representatives
from tracecal.calibrator.answer_ranking import Ranking, rank_split
from tracecal.calibrator.guarantee import find_guarantees, population_of_tested, with_forecasts
from tracecal.calibrator.schema import CalibratorFile
from tracecal.estimators.registry import INPUTS
from tracecal.fits.fit_settings import RiskControl
from tracecal.fits.pooled import PART, part_codes
from tracecal.io.files import read_json, read_parquet, write_checked
from tracecal.io.traces import read_traces

with job(snakemake):
    inputs, names = snakemake.input, snakemake.params.get("part_names")
    file = CalibratorFile.parse(read_json(inputs.calibrators), inputs.calibrators)
    estimator = file.recommended()
    # A run may leave it out.
    if estimator in file.estimators:
        answers = read_labelled_answers(inputs.labels, inputs.task, inputs.scores, inputs.features)
        rows = read_parquet(inputs.task, needed=["example_id", "group_id"])
        traces = read_traces(inputs.traces, ["example_id", "prompt", "answer", "surprisal"])
        answers = with_representatives(answers, rows, traces)
        columns = INPUTS[estimator]
        if names:
            answers = answers.join(part_codes(rows, names), on="example_id", validate="1:1")
            columns = [*columns, PART]
        splits = read_parquet(inputs.splits, ["example_id", "split", "rank", "part"])
        fits = file.estimators[estimator]
        ranking = Ranking.of_split(estimator, columns, fits, answers, splits)
        tested, targets = rank_split(ranking), RiskControl(**snakemake.params.targets)
        control = find_guarantees(ranking, tested, targets)
        control = with_forecasts(control, population_of_tested(tested))
        file = file.with_keys(estimator, risk_control=control)
    write_checked(file.text(), snakemake.output[0])
