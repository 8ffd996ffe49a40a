"""Write a finished run's answers as logs of Inspect, one for a model and task.

python workflow_scripts inspect_log [--configfile config/mine.yaml] [--estimator trace_plus]
    [--error-rate 0.2] [--output logs]

Files are named `MODEL/TASK.eval`, and replaced by the next call. `inspect view --log-dir logs`
opens them; it and this command need the package inspect-ai.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from trace_workflow.analyses.explorer_answers import AnswerFiles, read_explorer_answers
from trace_workflow.commands.every_eval_ever import model_info, package_version, uuid_of
from trace_workflow.config.config import Config, load_config
from trace_workflow.config.models import Model
from tracecal.calibrator.schema import CalibratorFile, ErrorRateControl, ErrorRateThreshold
from tracecal.calibrator.scoring import DIGITS
from tracecal.errors import InputError
from tracecal.explorer.columns import HELD_OUT, PROBABILITY, SPLIT
from tracecal.io.files import atomic_write, read_json
from tracecal.io.input_files import read_yaml
from tracecal.io.traces import read_traces

if TYPE_CHECKING:  # an optional package
    from inspect_ai.log import EvalLog, EvalResults, EvalSample
    from inspect_ai.scorer import Score

STOP_REASONS = {"eos": "stop", "stop": "stop", "length": "max_tokens"}
CORRECT, CONFIDENCE = "correct", "confidence"  # the names of the two scorers


class Decision(NamedTuple):
    """Whether an answer is kept, and why; None where it is not decided."""

    keep: bool | None
    reason: str


def write_logs(
    configfile: str,
    output: Path,
    estimator: str | None = None,
    error_rate: float | None = None,
) -> str:
    """Write the logs of a run, and say how many. Raises `InputError`."""
    if find_spec("inspect_ai") is None:
        raise InputError("the package inspect-ai is not installed: pip install inspect-ai")
    from inspect_ai.log import write_eval_log

    config = load_config(read_yaml(configfile), configfile)
    if error_rate is None and config.study.headline:
        error_rate = config.study.headline.error_rate
    models = {model.slug: model for model in config.models}
    count = 0
    for model, task in (pairs := config.study.pairs()):
        log = eval_log(config, models[model], task, configfile, estimator, error_rate)
        path = output / model / f"{task}.eval"
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as part:
            write_eval_log(log, part, format="eval")
        count += len(log.samples)
    return f"{count:,} answers in {len(pairs)} logs in {output}"


def eval_log(
    config: Config,
    model: Model,
    task: str,
    configfile: str,
    estimator: str | None = None,
    error_rate: float | None = None,
) -> "EvalLog":
    """Make the log of a model's answers to a task. Raises `InputError`."""
    from inspect_ai import log
    from inspect_ai.model import GenerateConfig

    folder = Path("results") / config.run
    calibrator_path = folder / f"calibrators/{model.slug}/{task}.json"
    if not calibrator_path.exists():
        raise InputError(
            f"{calibrator_path} is not there yet; first run: snakemake --cores all --configfile "
            f"{configfile}"
        )
    file = CalibratorFile.parse(read_json(calibrator_path), str(calibrator_path))
    control = next(
        (fits.risk_control for fits in file.estimators.values() if fits.risk_control), None
    )
    estimator = estimator or (control.ranked_by if control else file.recommended())
    if estimator not in file.estimators:
        raise InputError(
            f"--estimator: {calibrator_path} has no {estimator!r}; it has "
            f"{', '.join(file.estimators)}."
        )
    answers = read_answers(folder, model.slug, task, {estimator, *ranking_of(control)})
    decided = list(decisions(answers, control, error_rate))
    samples = [
        sample(row, model.slug, estimator, decision)
        for row, decision in zip(answers.iter_rows(named=True), decided, strict=True)
    ]
    made = datetime.fromtimestamp(calibrator_path.stat().st_mtime, UTC).isoformat(
        timespec="seconds"
    )
    decoded = {} if config.answered(model.slug) else {"temperature": 0.0}
    return log.EvalLog(
        status="success",
        eval=log.EvalSpec(
            **{
                name: str(uuid_of(f"{config.run}/{model.slug}/{task}/{name}"))
                for name in ("eval_id", "run_id", "task_id")
            },
            created=made,
            task=task,
            dataset=log.EvalDataset(
                name=task, samples=len(samples), sample_ids=answers["example_id"].to_list()
            ),
            model=model_info(model, "unknown")["id"],
            model_generate_config=GenerateConfig(**decoded),
            config=log.EvalConfig(),
            packages={"tracecal": package_version()},
            metadata={
                "run": config.run,
                "estimator": estimator,
                "error_rate": error_rate,
                "ranked_by": control.ranked_by if control else None,
                "confidence": control.confidence if control else None,
            },
        ),
        results=results(samples),
        stats=log.EvalStats(started_at=made, completed_at=made),
        samples=samples,
    )


def ranking_of(control: ErrorRateControl | None) -> set[str]:
    """The estimator whose held-out probabilities the thresholds apply to, if there is one."""
    return {control.ranked_by} if control else set()


def read_answers(folder: Path, model: str, task: str, estimators: set[str]) -> pl.DataFrame:
    """A row per evaluated answer, as in the explorer, with `answer` and `finish_reason`."""
    traces = str(folder / f"traces/{model}/{task}.arrow")
    # Of answers from files and of parts, which may be missing.
    rows = folder / f"work/answered/{model}/{task}.parquet"
    paths = [
        str(rows if rows.exists() else folder / f"tasks/{task}.parquet"),
        *(
            str(folder / f"{kind}/{model}/{task}.parquet")
            for kind in ("labels", "scores", "predictions")
        ),
    ]
    answers = read_explorer_answers(AnswerFiles(traces, *paths), sorted(estimators))
    texts = read_traces(traces, ["example_id", "answer", "finish_reason"])
    return answers.join(texts, on="example_id", how="left", validate="1:1", maintain_order="left")


def decisions(
    answers: pl.DataFrame, control: ErrorRateControl | None, error_rate: float | None
) -> Iterator[Decision]:
    """Whether each answer is kept, by the split that tests thresholds. Raises `InputError`."""
    if error_rate is None or control is None:
        reason = "no error rate is asked for" if control else "no threshold was tested"
        yield from [Decision(None, reason)] * answers.height
        return
    tested = {entry.error_rate: entry for entry in control.thresholds}
    if error_rate not in tested:
        raise InputError(
            f"--error-rate {error_rate:g} was not tested; the run tested "
            f"{', '.join(f'{rate:g}' for rate in tested)} (risk_control.error_rates)."
        )
    sizes = pl.col("example_id").count().over("group_id")
    held_out = HELD_OUT + control.ranked_by
    scores = answers[held_out] if held_out in answers.columns and control.split == SPLIT else None
    for place, size in enumerate(answers.select(sizes).to_series()):
        score = None if scores is None else scores[place]
        yield decision(score, size, control, tested[error_rate])


def decision(
    score: float | None, size: int, control: ErrorRateControl, entry: ErrorRateThreshold
) -> Decision:
    """Whether an answer of a group of this `size` is kept, and why."""
    if entry.threshold is None:
        return Decision(None, control.explain(entry))
    if score is None:
        return Decision(None, "the ranking was fitted on this answer, or cannot score it")
    if size > control.largest_group:
        return Decision(False, f"answers in groups of {size} are never kept")
    keep = score >= entry.threshold
    return Decision(
        keep,
        f"{control.ranked_by} held out: {score:.3f}, {'at least' if keep else 'below'} the "
        f"threshold {entry.threshold:.3f} for at most {entry.error_rate:.0%} wrong",
    )


def sample(row: Mapping[str, Any], model: str, estimator: str, decided: Decision) -> "EvalSample":
    """Make the sample of an answer."""
    from inspect_ai import log
    from inspect_ai import model as chat

    example_id = row["example_id"]
    asked = "\n\n".join(text for text in (row["context"], row["question"]) if text)
    message = chat.ChatMessageAssistant(
        id=f"{example_id}-answer", content=row["answer"] or "", model=model, source="generate"
    )
    surprisal, tokens = row["surprisal"] or [], row["tokens"] or []
    logprobs = None
    if len(surprisal) == len(tokens) and None not in (*surprisal, *tokens):
        pairs = zip(tokens, surprisal, strict=True)
        logprobs = chat.Logprobs(
            content=[chat.Logprob(token=text, logprob=-value) for text, value in pairs]
        )
    choice = chat.ChatCompletionChoice(
        message=message,
        stop_reason=STOP_REASONS.get(row["finish_reason"], "unknown"),
        logprobs=logprobs,
    )
    kept = ("prompt", "language", "group_id", "error_kind", "entropy")
    return log.EvalSample(
        id=example_id,
        epoch=1,
        input=asked,
        target=row["references"] or "",
        messages=[chat.ChatMessageUser(id=f"{example_id}-question", content=asked), message],
        output=chat.ModelOutput(model=model, choices=[choice]),
        scores=scores_of(row, estimator, decided),
        metadata={name: row[name] for name in kept if row[name] is not None},
    )


def scores_of(row: Mapping[str, Any], estimator: str, decided: Decision) -> "dict[str, Score]":
    """The verdict on an answer, and its confidence as the scorer `tracecal/confidence` has it.

    The probability is the mean over the splits that hold the answer out.
    """
    from inspect_ai import scorer

    scores = {}
    if row["correct"] is not None:
        verdict = scorer.CORRECT if row["correct"] else scorer.INCORRECT
        scores[CORRECT] = scorer.Score(
            value=verdict, answer=row["prediction"], explanation=row["error_kind"]
        )
    probability = row[PROBABILITY + estimator]
    value = {
        "probability": None if probability is None else round(probability, DIGITS),
        "correct": row["correct"],
        "keep": decided.keep,
        "seen": False,
    }
    scores[CONFIDENCE] = scorer.Score(value=value, explanation=decided.reason)
    return scores


def results(samples: "list[EvalSample]") -> "EvalResults":
    """The accuracy, and the metrics of the scorer `tracecal/confidence`.

    Coverage and the error rate are of the answers that are decided.
    """
    from inspect_ai import log

    from tracecal.serving.inspect_scorer import MEASURES, VALUE

    rows = pl.DataFrame([one.scores[CONFIDENCE].value for one in samples], schema=VALUE)
    decided = rows.drop_nulls("keep")
    measured = {
        name: compute(decided if name in ("coverage", "kept_error") else rows)
        for name, compute in MEASURES.items()
    }
    judged = rows["correct"].drop_nulls()
    by_scorer = {CORRECT: {"accuracy": judged.mean()} if len(judged) else {}, CONFIDENCE: measured}
    return log.EvalResults(
        total_samples=len(samples),
        completed_samples=len(samples),
        scores=[
            log.EvalScore(
                name=scorer,
                scorer=scorer,
                scored_samples=len(judged) if scorer == CORRECT else len(samples),
                metrics={
                    name: log.EvalMetric(name=name, value=value) for name, value in metrics.items()
                },
            )
            for scorer, metrics in by_scorer.items()
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configfile", default="config/config.yaml")
    parser.add_argument(
        "--estimator", help="whose probabilities are written; by default the one that ranks"
    )
    parser.add_argument(
        "--error-rate", type=float, help="of the answers to keep; by default the headline's"
    )
    parser.add_argument("--output", type=Path, default=Path("logs"))
    arguments = parser.parse_args()
    try:
        print(write_logs(**vars(arguments)))
    except InputError as error:
        sys.exit(f"error: {error}")
