"""Beam search with exact length-normalised log-probabilities (Flores et al. 2025)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trace_workflow.config.prompting import PromptSettings
from tracecal.capture.batches import Keep, NotFiniteError, Prompt, forget, in_batches
from tracecal.capture.context import in_place, padded_context, shared_prefix
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.tokens import end_tokens
from tracecal.io.journal import Row


@dataclass(frozen=True)
class Beam:
    """One finished hypothesis: its tokens and their total log-probability (nats)."""

    token_ids: tuple[int, ...]
    logprob: float

    @property
    def normalised(self) -> float:
        return self.logprob / len(self.token_ids)


def beam_task(
    model: PreTrainedModel,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    asking: PromptSettings,
    batch_size: int,
    width: int,
    keep: Keep = forget,
) -> list[Row]:
    """One row of the beams file per prompt, with `width` beams; finished rows go to `keep`.

    `batch_size` counts hypotheses, as it counts answers in greedy decoding.
    """
    ends, stops = end_tokens(model, tokenizer), StopStrings(tokenizer, asking.stop)

    def work(batch: list[Prompt]) -> list[Row]:
        ids = [prompt["prompt_token_ids"] for prompt in batch]
        results = search_beams(model, ids, ends, stops, asking.max_new_tokens, width)
        return [
            {
                "example_id": prompt["example_id"],
                "beam_token_ids": [list(beam.token_ids) for beam in beams],
                "beam_logprob": [beam.logprob for beam in beams],
                "beam_length": [len(beam.token_ids) for beam in beams],
            }
            for prompt, beams in zip(batch, results, strict=True)
        ]

    return in_batches(prompts, max(1, batch_size // width), "beams", work, keep)


@torch.inference_mode()
def search_beams(
    model: PreTrainedModel,
    prompts: Sequence[list[int]],
    ends: Sequence[int],
    stops: StopStrings,
    max_new_tokens: int,
    width: int,
) -> list[list[Beam]]:
    """The `width` best hypotheses of each prompt, best first by length-normalised log-probability.

    At every step the candidates of a prompt's live hypotheses are ranked together by total
    log-probability; an ending candidate among the first `width` is finished, and the best `width`
    others stay live. A prompt is done when its finished hypotheses beat every live one at its
    current length, or at `max_new_tokens`, where live ones count as finished. Raises
    `NotFiniteError` where the model yields NaN or infinite logits.
    """
    finished: list[list[Beam]] = [[] for _ in prompts]
    rows = list(range(len(prompts)))
    context, ids = padded_context(model, prompts, shared_prefix(model, prompts))
    logits = context.read(ids)
    context = context.select([index for index in rows for _ in range(width)])
    # The live hypotheses' tokens and log-probabilities, [prompts, width, steps].
    tokens = torch.empty(len(rows), width, 0, dtype=torch.long, device=model.device)
    logprobs = torch.empty(len(rows), width, 0, dtype=torch.float64, device=model.device)
    end_ids = torch.tensor(list(ends), device=model.device)
    for step in range(1, max_new_tokens + 1):
        _require_finite(logits, rows, step)
        parents, chosen, scores = _candidates(logits, logprobs, width, len(ends))
        steps = _history(tokens, parents, chosen), _history(logprobs, parents, scores)
        ending = torch.isin(chosen, end_ids)
        if step == max_new_tokens:
            ending[:] = True
        cuts = _stop_cuts(steps[0], stops)
        ending |= torch.tensor([[cut is not None for cut in row] for row in cuts]).to(ending.device)
        _finish(finished, rows, steps, ending[:, :width], cuts, width)
        alive = ending.to(torch.int8).argsort(dim=-1, stable=True)[:, :width]
        tokens, logprobs = (_gather(history, alive) for history in steps)
        best = logprobs.sum(-1).max(-1).values / step
        unfinished = [
            index
            for index, row in enumerate(rows)
            if len(finished[row]) < width or finished[row][-1].normalised < best[index].item()
        ]
        if step == max_new_tokens or not unfinished:
            break
        # The context's rows follow their hypotheses; rows of prompts that are done are dropped.
        unfinished = [unfinished[number] for number in in_place(unfinished)]
        selection = torch.tensor(unfinished, device=tokens.device)
        origin = torch.arange(len(rows), device=tokens.device)[:, None] * width
        source = (origin + parents.gather(1, alive))[selection].flatten()
        rows = [rows[index] for index in unfinished]
        tokens, logprobs = tokens[selection], logprobs[selection]
        context.keep(source.tolist())
        logits = context.read(tokens[:, :, -1:].flatten(0, 1))
    return finished


def _require_finite(logits: torch.Tensor, rows: list[int], step: int) -> None:
    """Check `logits` [prompts * live, vocabulary] of the prompts `rows`; -inf is allowed."""
    finite = logits.max(-1).values.isfinite().view(len(rows), -1).all(-1).tolist()
    if not all(finite):
        raise NotFiniteError(rows[finite.index(False)], f"token {step} of a beam")


def _candidates(
    logits: torch.Tensor, logprobs: torch.Tensor, width: int, ends: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The best continuations of each prompt by total log-probability, best first.

    There are width * (1 + ends) of them, so that `width` remain without the ending ones. Returns
    parent hypothesis, token and the token's log-probability, each [prompts, candidates].
    """
    prompts, live, _ = logprobs.shape
    first = logprobs.shape[-1] == 0
    per_parent = min(width * (1 + ends) if first else width + ends, logits.shape[-1])
    values, token = logits.log_softmax(-1).topk(per_parent, dim=-1)
    parents = 1 if first else live
    values = values.double().view(prompts, parents, per_parent)
    total = (logprobs.sum(-1)[:, :parents, None] + values).flatten(1)
    count = min(width * (1 + ends), total.shape[-1])
    order = total.argsort(dim=-1, descending=True, stable=True)[:, :count]
    return (
        order // per_parent,
        token.view(prompts, -1).gather(1, order),
        values.flatten(1).gather(1, order),
    )


def _gather(history: torch.Tensor, hypotheses: torch.Tensor) -> torch.Tensor:
    return history.gather(1, hypotheses[:, :, None].expand(-1, -1, history.shape[-1]))


def _history(history: torch.Tensor, parents: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    return torch.cat([_gather(history, parents), last[:, :, None]], dim=-1)


def _stop_cuts(tokens: torch.Tensor, stops: StopStrings) -> list[list[int | None]]:
    """How many tokens a stop string leaves of each candidate; None without one."""
    if not stops.strings:
        return [[None] * tokens.shape[1] for _ in range(tokens.shape[0])]
    return [[stops.cut(ids) for ids in hypotheses] for hypotheses in tokens.tolist()]


def _finish(
    finished: list[list[Beam]],
    rows: list[int],
    steps: tuple[torch.Tensor, torch.Tensor],
    ending: torch.Tensor,
    cuts: list[list[int | None]],
    width: int,
) -> None:
    """Move ending candidates to their prompt's finished hypotheses; keep the best `width`."""
    for index, rank in ending.nonzero().tolist():
        ids, logprobs = (history[index, rank].tolist() for history in steps)
        count = cuts[index][rank] or len(ids)
        beam = Beam(tuple(ids[:count]), sum(logprobs[:count]))
        pool = finished[rows[index]]
        # Two hypotheses may differ only after a stop string.
        if all(beam.token_ids != finished_beam.token_ids for finished_beam in pool):
            pool.append(beam)
        pool.sort(key=lambda beam: -beam.normalised)
        del pool[width:]
