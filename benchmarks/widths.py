"""How much the k likeliest tokens leave open, on the distributions of a finished run's model.

    PYTHONPATH=workflow_scripts:tests python -m benchmarks.widths RUN MODEL TASK VOCABULARY ...

Every answer is replayed, its distributions are cut to k, and the entropies that are left are set
beside the whole ones: the middle of the bounds, and what others take, the listed tokens' own terms
(truncated) or the same of their renormalised probabilities. A VOCABULARY larger than the model's
states tokens that it never gives. Intervals are those of the run's own TRACE+.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from tracecal.answers.trace import entropy_bounds
from tracecal.calibrator.predictor import load_predictor
from tracecal.calibrator.scoring import score_answer
from tracecal.capture.model import load_model
from tracecal.io.evaluated import evaluated
from tracecal.io.traces import read_traces

LENGTHS = (20, 5, 1)


@torch.inference_mode()
def distributions(model, row):
    """Of each token of an answer the largest log-probabilities [tokens, k], and the entropy."""
    ids = torch.tensor([row["prompt_token_ids"] + row["token_ids"][:-1]])
    logits = model(input_ids=ids, logits_to_keep=len(row["token_ids"])).logits[0]
    logprobs = logits.double().log_softmax(-1)
    entropy = -(logprobs.exp() * logprobs).sum(-1)
    return logprobs.topk(max(LENGTHS)).values.numpy(), entropy.numpy()


def cut(top, vocabulary):
    """The bounds of each token's entropy, and the truncated and the renormalised one [tokens]."""
    p = np.exp(top)
    truncated = -(p * top).sum(-1)
    total = p.sum(-1)
    renormalised = truncated / total + np.log(total)
    return [entropy_bounds(row.tolist(), vocabulary) for row in top], truncated, renormalised


def main(run, model, task, *vocabularies):
    results = Path(run)
    traces = evaluated(
        read_traces(results / "traces" / model / f"{task}.arrow"),
        results / "tasks" / f"{task}.parquet",
    )
    weights = load_model(results / "models" / model, "float32")
    fitted = load_predictor(results / "calibrators" / model / f"{task}.json")
    rows = traces.to_dicts()
    tops, entropies = zip(*(distributions(weights, row) for row in rows), strict=True)
    true = np.concatenate(entropies)
    print(f"{len(rows)} answers, {len(true)} tokens, mean entropy {true.mean():.3f} nats")
    print(
        "| k | V | inside | width, mean | 95 % | middle | truncated | renormalised "
        "| interval, mean | 95 % | inside |"
    )
    print("|---" * 11 + "|")
    for vocabulary in map(int, vocabularies):
        for k in LENGTHS:
            line([cut(top[:, :k], vocabulary) for top in tops], true, rows, fitted, k, vocabulary)


def line(cuts, true, rows, fitted, k, vocabulary):
    bounds = [one for found, _, _ in cuts for one in found]
    low, middle, high = (
        np.array([getattr(one, name) for one in bounds]) for name in ("lower", "middle", "upper")
    )
    truncated, renormalised = (np.concatenate([one[n] for one in cuts]) for n in (1, 2))
    errors = [np.abs(one - true).mean() for one in (middle, truncated, renormalised)]
    inside, spread = 0, []
    for row, (found, _, _) in zip(rows, cuts, strict=True):
        exact = score_answer(fitted, row["surprisal"], row["entropy"]).probability
        ends = [[getattr(one, name) for one in found] for name in ("middle", "lower", "upper")]
        one = score_answer(fitted, row["surprisal"], ends[0], lower=ends[1], upper=ends[2])
        inside += one.lower <= exact <= one.upper
        spread.append(one.upper - one.lower)
    numbers = [(high - low).mean(), np.quantile(high - low, 0.95), *errors]
    numbers += [np.mean(spread), np.quantile(spread, 0.95)]
    told = [f"{number:.4f}" for number in numbers]
    held = f"{100 * ((low <= true) & (true <= high)).mean():.1f} %"
    cells = [str(k), f"{vocabulary:,}", held, *told, f"{100 * inside / len(rows):.1f} %"]
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
