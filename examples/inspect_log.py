"""Write a finished run's answers as logs of Inspect, one for a model and task.

python examples/inspect_log.py results/demo [--estimator trace_plus] [--error-rate 0.2]
    [--output logs]

Files are named `MODEL/TASK.eval`, and replaced by the next call. `inspect view --log-dir logs`
opens them; it and this script need the package inspect-ai.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
from inspect_ai import log, model, scorer

import tracecal
from tracecal.calibrator.scoring import DIGITS
from tracecal.integrations.inspect_scorer import MEASURES, VALUE
from tracecal.statistics.percentages import rate_text

STOP_REASONS = {"eos": "stop", "stop": "stop", "length": "max_tokens"}
CORRECT, CONFIDENCE = "correct", "confidence"  # the names of the two scorers
METADATA = ("prompt", "language", "group_id", "error_kind", "entropy")


class Decision(NamedTuple):
    """Whether an answer is kept, and why; None where it is not decided."""

    keep: bool | None
    reason: str


def write_logs(
    run: Path, output: Path, estimator: str | None = None, error_rate: float | None = None
) -> str:
    """Write the logs of a run's folder, and say how many."""
    paths, n_answers = sorted((run / "predictions").glob("*/*.parquet")), 0
    if not paths:
        raise tracecal.InputError(f"{run} has no predictions; is the run finished?")
    for path in paths:
        slug, task = path.parent.name, path.stem
        eval_log = make_log(run, slug, task, estimator, error_rate)
        (output / slug).mkdir(parents=True, exist_ok=True)
        log.write_eval_log(eval_log, output / slug / f"{task}.eval", format="eval")
        n_answers += len(eval_log.samples)
    return f"{n_answers:,} answers in {len(paths)} logs in {output}"


def make_log(
    run: Path, slug: str, task: str, estimator: str | None, error_rate: float | None
) -> log.EvalLog:
    """Make the log of a model's answers to a task; by default of the estimator that ranks them."""
    tested = run / "analyses/risk_coverage.parquet"  # which only runs with TRACE+ have
    rows = pl.read_parquet(tested) if tested.exists() else pl.DataFrame(schema=["model", "task"])
    thresholds = rows.filter(model=slug, task=task).to_dicts()
    path = run / f"predictions/{slug}/{task}.parquet"
    predictions = pl.read_parquet(path)
    ranking = thresholds[0]["ranked_by"] if thresholds else None
    estimator = estimator or ranking or "trace_plus"
    if estimator not in (ids := set(predictions["estimator"])):
        raise tracecal.InputError(f"{path} has no {estimator!r}; it has {', '.join(sorted(ids))}")
    answers = read_answers(run, slug, task, predictions.filter(estimator=estimator))
    held_out = predictions.filter(estimator=ranking, split=thresholds[0]["split"] if ranking else 0)
    decided = decisions(answers, held_out, thresholds, error_rate)
    samples = [
        make_sample(row, slug, decision)
        for row, decision in zip(answers.to_dicts(), decided, strict=True)
    ]
    with pa.ipc.open_file(run / f"traces/{slug}/{task}.arrow") as traces:
        is_greedy = traces.schema.metadata[b"decoding"].startswith(b"greedy")
    decoded = {"temperature": 0.0} if is_greedy else {}
    made = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return log.EvalLog(
        status="success",
        eval=log.EvalSpec(
            **dict.fromkeys(("eval_id", "run_id", "task_id"), f"{run.name}-{slug}-{task}"),
            created=made,
            task=task,
            dataset=log.EvalDataset(
                name=task, samples=len(samples), sample_ids=answers["example_id"].to_list()
            ),
            model=slug,
            model_generate_config=model.GenerateConfig(**decoded),
            config=log.EvalConfig(),
            metadata={
                "run": run.name,
                "estimator": estimator,
                "error_rate": error_rate,
                "ranked_by": ranking,
                "confidence": thresholds[0]["confidence"] if thresholds else None,
            },
        ),
        results=measure(samples),
        stats=log.EvalStats(started_at=made, completed_at=made),
        samples=samples,
    )


def read_answers(run: Path, slug: str, task: str, predictions: pl.DataFrame) -> pl.DataFrame:
    """A row per evaluated answer; `probability` is the mean over the splits that hold it out."""
    answers = pl.read_parquet(run / f"labels/{slug}/{task}.parquet")
    frames = (
        pl.read_ipc(run / f"traces/{slug}/{task}.arrow"),
        pl.read_parquet(run / f"tasks/{task}.parquet").filter(role="evaluation"),
    )
    for frame in frames:
        answers = answers.join(frame, on="example_id")
    means = predictions.sort("split").group_by("example_id").agg(pl.col("probability").mean())
    return answers.join(means, on="example_id", how="left").sort("example_id")


def decisions(
    answers: pl.DataFrame,
    held_out: pl.DataFrame,
    thresholds: list[dict[str, Any]],
    error_rate: float | None,
) -> Iterator[Decision]:
    """Whether each answer is kept, by the `held_out` probabilities of the split that tests."""
    if error_rate is None or not thresholds:
        reason = "no error rate is asked for" if thresholds else "no threshold was tested"
        return iter([Decision(None, reason)] * answers.height)
    tested = {entry["error_rate"]: entry for entry in thresholds}
    if error_rate not in tested:
        rates = ", ".join(f"{rate:g}" for rate in tested)
        raise tracecal.InputError(
            f"--error-rate {error_rate:g} was not tested; the run tested {rates}"
        )
    probabilities = dict(held_out.select("example_id", "probability").iter_rows())
    names = answers["example_id"]
    return (decide(probabilities.get(name), tested[error_rate]) for name in names)


def decide(proba: float | None, entry: Mapping[str, Any]) -> Decision:
    """Whether an answer is kept, and why."""
    if entry["threshold"] is None:
        rate = f"no threshold guarantees an error rate of {entry['error_rate']:g}"
        return Decision(None, entry["reason"] or rate)
    if proba is None:
        return Decision(None, "the ranking was fitted on this answer, or cannot score it")
    keep = proba >= entry["threshold"]
    return Decision(
        keep,
        f"{entry['ranked_by']} held out: {proba:.3f}, {'at least' if keep else 'below'} the "
        f"threshold {entry['threshold']:.3f} for at most {rate_text(entry['error_rate'])} wrong",
    )


def make_sample(row: Mapping[str, Any], slug: str, decision: Decision) -> log.EvalSample:
    """An answer with its tokens, the verdict on it, and its confidence as `tracecal/confidence`."""
    example_id, proba = row["example_id"], row["probability"]
    question = "\n\n".join(text for text in (row["context"], row["question"]) if text)
    answer = model.ChatMessageAssistant(
        id=f"{example_id}-answer", content=row["answer"], model=slug, source="generate"
    )
    tokens = [
        model.Logprob(token=token or "", logprob=-surprisal)
        for token, surprisal in zip(row["tokens"] or [], row["surprisal"], strict=False)
    ]
    choice = model.ChatCompletionChoice(
        message=answer,
        stop_reason=STOP_REASONS.get(row["finish_reason"], "unknown"),
        logprobs=model.Logprobs(content=tokens),
    )
    verdict = scorer.CORRECT if row["correct"] else scorer.INCORRECT
    value = {
        "probability": None if proba is None else round(proba, DIGITS),
        "correct": row["correct"],
        "keep": decision.keep,
        "seen": False,
    }
    return log.EvalSample(
        id=example_id,
        epoch=1,
        input=question,
        target=row["references"] or "",
        messages=[model.ChatMessageUser(id=f"{example_id}-question", content=question), answer],
        output=model.ModelOutput(model=slug, choices=[choice]),
        scores={
            CORRECT: scorer.Score(
                value=verdict, answer=row["prediction"], explanation=row["error_kind"]
            ),
            CONFIDENCE: scorer.Score(value=value, explanation=decision.reason),
        },
        metadata={name: row[name] for name in METADATA if row[name] is not None},
    )


def measure(samples: list[log.EvalSample]) -> log.EvalResults:
    """The accuracy, and the metrics of `tracecal/confidence`; coverage is of decided answers."""
    rows = pl.DataFrame([sample.scores[CONFIDENCE].value for sample in samples], schema=VALUE)
    decided = rows.drop_nulls("keep")
    measured = {
        CORRECT: {"accuracy": rows["correct"].mean()},
        CONFIDENCE: {
            name: compute(decided if name in ("coverage", "kept_error") else rows)
            for name, compute in MEASURES.items()
        },
    }
    return log.EvalResults(
        total_samples=len(samples),
        completed_samples=len(samples),
        scores=[
            log.EvalScore(
                name=name,
                scorer=name,
                scored_samples=len(samples),
                metrics={key: log.EvalMetric(name=key, value=value) for key, value in each.items()},
            )
            for name, each in measured.items()
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="the folder of a finished run")
    parser.add_argument(
        "--estimator", help="whose probabilities are written; by default the one that ranks"
    )
    parser.add_argument("--error-rate", type=float, help="of the answers to keep")
    parser.add_argument("--output", type=Path, default=Path("logs"))
    try:
        print(write_logs(**vars(parser.parse_args())))
    except (OSError, tracecal.InputError) as error:
        sys.exit(f"error: {error}")
