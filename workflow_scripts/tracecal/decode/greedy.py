"""Decoding that keeps, per token, two floats: surprisal and predictive entropy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from transformers import DynamicCache, PreTrainedModel

from tracecal.decode.batching import NotFiniteError
from tracecal.decode.model import left_padded, next_logits
from tracecal.decode.stopping import StopStrings


@dataclass
class Answer:
    """One decoded answer and its trace; the three lists have T >= 1 entries (values in nats)."""

    token_ids: list[int] = field(default_factory=list)
    surprisal: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    finish_reason: str = "length"


def token_risk(logits: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Surprisal of `tokens` [n] and entropy of the whole distribution, both [n], in nats.

    `logits` are raw float32 [n, vocabulary]; 0 log 0 = 0 (paper, section 3.3).
    """
    log_probs = logits.log_softmax(-1)
    surprisal = -log_probs.gather(-1, tokens[:, None]).squeeze(-1)
    # `special.entr` is -p ln p with 0 at p = 0, where p * log p would be NaN.
    entropy = torch.special.entr(log_probs.exp()).sum(-1)
    return surprisal.clamp(min=0), entropy.clamp(min=0)


def decode_greedily(
    model: PreTrainedModel,
    prompts: Sequence[list[int]],
    ends: Sequence[int],
    stops: StopStrings,
    max_new_tokens: int,
) -> list[Answer]:
    """Decode a batch of prompts, the most likely token at each step; see `decode`."""

    def likeliest(logits: torch.Tensor, rows: list[int]) -> torch.Tensor:
        return logits.argmax(-1)

    return decode(model, prompts, ends, stops, max_new_tokens, likeliest)


@torch.inference_mode()
def decode(
    model: PreTrainedModel,
    prompts: Sequence[list[int]],
    ends: Sequence[int],
    stops: StopStrings,
    max_new_tokens: int,
    choose: Callable[[torch.Tensor, list[int]], torch.Tensor],
    copies: int = 1,
) -> list[Answer]:
    """Decode a batch of prompts; `copies` answers of each, in the prompts' order.

    `choose` takes the raw logits [n, vocabulary] and which answers they continue, and gives the
    tokens [n]. An answer ends with a token of `ends` (kept), with the token in which a stop
    string begins (kept), or at `max_new_tokens`. Each step's logits are reduced on the spot.
    Raises `NotFiniteError` where the model yields NaN or infinite logits.
    """
    rows = list(range(len(prompts) * copies))  # which answer each row of the batch belongs to
    answers = [Answer() for _ in rows]
    open_rows = set(rows)
    ids, mask = left_padded(list(prompts), model.device)
    cache = DynamicCache(config=model.config)
    for step in range(max_new_tokens):
        logits = next_logits(model, ids, mask, cache)
        if step == 0 and copies > 1:  # a prompt is read once, whatever its number of answers
            cache.batch_repeat_interleave(copies)
            logits, mask = (rows_of.repeat_interleave(copies, 0) for rows_of in (logits, mask))
        tokens = choose(logits, rows)
        surprisal, entropy = token_risk(logits, tokens)
        steps = zip(rows, tokens.tolist(), surprisal.tolist(), entropy.tolist(), strict=True)
        for row, *values in steps:
            if row not in open_rows:
                continue
            if not all(map(math.isfinite, values[1:])):
                raise NotFiniteError(row // copies, f"token {step + 1} of its answer")
            if _extend(answers[row], *values, ends, stops):
                open_rows.remove(row)
        if not open_rows:
            break
        if len(open_rows) <= len(rows) // 2:
            kept = [index for index, row in enumerate(rows) if row in open_rows]
            rows = [rows[index] for index in kept]
            selection = torch.tensor(kept, device=tokens.device)
            tokens, mask = tokens[selection], mask[selection]
            cache.batch_select_indices(selection)
        ids = tokens[:, None]
        mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=-1)
    return answers


def _extend(
    answer: Answer,
    token: int,
    surprisal: float,
    entropy: float,
    ends: Sequence[int],
    stops: StopStrings,
) -> bool:
    """Append one step to an answer; True once it is complete."""
    answer.token_ids.append(token)
    answer.surprisal.append(surprisal)
    answer.entropy.append(entropy)
    if token in ends:
        answer.finish_reason = "eos"
    elif (count := stops.cut(answer.token_ids)) is not None:
        answer.finish_reason = "stop"
        for values in (answer.token_ids, answer.surprisal, answer.entropy):
            del values[count:]
    return answer.finish_reason != "length"
