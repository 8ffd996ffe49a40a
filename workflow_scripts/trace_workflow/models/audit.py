"""Audit of traces: a teacher-forced replay must reproduce tokens, surprisals and entropies."""

import polars as pl
import torch
from transformers import PreTrainedModel

from tracecal.errors import InputError
from tracecal.io.randomness import rank


def audit_sample(traces: pl.DataFrame, size: int) -> pl.DataFrame:
    """At most `size` rows, chosen by a hash of their ids, whatever the row order."""
    ranks = pl.col("example_id").map_elements(rank, return_dtype=pl.String)
    return traces.sort(ranks).head(size)


def audit_traces(
    model: PreTrainedModel, traces: pl.DataFrame, tolerance: float
) -> dict[str, float]:
    """Replay each answer in one unbatched forward pass and measure the largest deviations.

    The softmax is computed in float64, all else in the model's dtype. A recorded token must be the
    argmax, or its logit within `tolerance` of the highest. Returns counts and the largest
    deviations (nats). Raises `InputError` naming the example and token where a deviation exceeds
    `tolerance`.
    """
    report = {
        "answers": traces.height,
        "tokens": traces["token_ids"].list.len().sum(),
        "near_ties": 0,
        "largest_surprisal_deviation": 0.0,
        "largest_entropy_deviation": 0.0,
        "largest_logit_gap": 0.0,
        "tolerance": tolerance,
    }
    for row in traces.iter_rows(named=True):
        tokens = torch.tensor(row["token_ids"], device=model.device)
        logits = _replayed_logits(model, row["prompt_token_ids"], row["token_ids"])
        surprisal, entropy = _risk(logits, tokens)
        gap = logits.max(-1).values - logits.gather(-1, tokens[:, None]).squeeze(-1)
        deviations = {
            "largest_surprisal_deviation": _deviation(surprisal, row["surprisal"]),
            "largest_entropy_deviation": _deviation(entropy, row["entropy"]),
            "largest_logit_gap": gap,
        }
        for name, values in deviations.items():
            # Written so that a NaN fails too.
            if not bool((values <= tolerance).all()):
                position = int((~(values <= tolerance)).nonzero()[0])
                raise InputError(
                    f"audit: {name.replace('_', ' ')} of example {row['example_id']!r} at token "
                    f"{position + 1} is {values[position].item():.3g}, more than the tolerance "
                    f"{tolerance:g}: a teacher-forced pass does not reproduce the recorded trace. "
                    "Delete the traces file and its finished batches, the folder of this model and "
                    "task in work/journals/traces/, and run again; if this persists, the batched "
                    "and the unbatched forward pass of this model differ (see audit.tolerance)."
                )
            report[name] = max(report[name], values.max().item())
        report["near_ties"] += int((gap > 0).sum())
    return report


def _risk(logits: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Surprisal of `tokens` [T] and entropy at each of them, both [T], float64, in nats.

    Computed from the definitions, so that the audit also detects errors of `capture`.
    """
    log_probs = logits.double().log_softmax(-1)
    # `special.entr` is -p ln p with 0 at p = 0, where p * log p would be NaN.
    entropy = torch.special.entr(log_probs.exp()).sum(-1)
    return -log_probs.gather(-1, tokens[:, None]).squeeze(-1), entropy


def _deviation(replayed: torch.Tensor, recorded: list[float]) -> torch.Tensor:
    return (replayed - torch.tensor(recorded, device=replayed.device)).abs()


@torch.inference_mode()
def _replayed_logits(model: PreTrainedModel, prompt: list[int], answer: list[int]) -> torch.Tensor:
    """Float32 logits [T, vocabulary] at the positions that predict the answer's tokens."""
    ids = torch.tensor([prompt + answer[:-1]], device=model.device)
    return model(input_ids=ids, use_cache=False, logits_to_keep=len(answer)).logits[0].float()
