"""Greedy and sampled decoding, which keeps each token's surprisal and entropy and no logits."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trace_workflow.config.prompting import PromptSettings
from tracecal.capture.batches import Keep, NotFiniteError, Prompt, forget, in_waves
from tracecal.capture.capture import Answer, StepTrace, capture
from tracecal.capture.context import Context, gathered, padded_context, refilled, shared_prefix
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.tokens import end_tokens, token_texts
from tracecal.io.journal import Row

# From raw logits [n, vocabulary], the answers that they continue and the answers' lengths to the
# next tokens [n]
Choose = Callable[[torch.Tensor, list[int], list[int]], torch.Tensor]
# An engine's counterpart of `decode` below, for the models that it loads
Decode = Callable[..., "list[Answer]"]

# Steps between two looks at the decoded tokens: each look makes the host wait for the GPU
LOOK_EVERY = {"cpu": 1, "cuda": 4}
# Share of a batch's answers that must be finished for others to take their places
REFILL_SHARE = 0.1


@dataclass(frozen=True)
class AnswerEnd:
    """What ends an answer: an end token, a stop string, or the largest number of tokens."""

    tokens: Sequence[int]
    stops: StopStrings
    max_new_tokens: int

    def extend(self, answer: Answer, token: int, surprisal: float, entropy: float) -> None:
        """Append one step to an unfinished answer, and set its `finish_reason` if it ends there."""
        answer.token_ids.append(token)
        answer.surprisal.append(surprisal)
        answer.entropy.append(entropy)
        if token in self.tokens:
            answer.finish_reason = "eos"
        elif (count := self.stops.cut(answer.token_ids)) is not None:
            answer.finish_reason = "stop"
            for values in (answer.token_ids, answer.surprisal, answer.entropy):
                del values[count:]
        elif len(answer.token_ids) == self.max_new_tokens:
            answer.finish_reason = "length"


@dataclass
class GrowingBatch:
    """Answers that grow together: their indices, their rows of the context, and their last tokens.

    Answers to one prompt share a row until they grow.
    """

    context: Context
    answers: list[int]
    rows: list[int]
    tokens: torch.Tensor


def joined(
    live: GrowingBatch, growing: list[int], waiting: list[tuple[GrowingBatch, list[int]]]
) -> GrowingBatch | None:
    """A batch of the `growing` answers of `live` and of `waiting` answers of other batches.

    Each answer has a row. None where there are no answers; `live` itself may change.
    """
    parts = [part for part in [(live, growing), *waiting] if part[1]]
    if not parts:
        return None
    sources = [(batch.context, batch.rows[i]) for batch, places in parts for i in places]
    context, order = sources[0][0], list(range(len(sources)))
    if sources != [(context, row) for row in range(len(context.pads))]:
        if not context.splices:
            context = context.select([row for _, row in sources])
        elif growing:
            context, order = refilled(context, growing, sources[len(growing) :])
        else:
            context = gathered(sources)
    answers = [batch.answers[i] for batch, places in parts for i in places]
    tokens = torch.cat([batch.tokens[places] for batch, places in parts])
    rows = list(range(len(order)))
    return GrowingBatch(context, [answers[number] for number in order], rows, tokens[order])


@torch.inference_mode()
def decode(
    model: PreTrainedModel,
    prompts: Sequence[list[int]],
    ends: Sequence[int],
    stops: StopStrings,
    max_new_tokens: int,
    choose: Choose | None = None,
    copies: int = 1,
    slots: int | None = None,
) -> list[Answer]:
    """Decode `copies` answers to each prompt, in the prompts' order.

    `choose` picks the tokens; None means the most likely ones. An answer ends with an end token of
    `ends`, with the token in which a stop string begins (it keeps both), or at `max_new_tokens`. At
    most `slots` answers (all where None) grow at once: prompts wait in their order and take the
    places of finished answers. The prompts' common prefix is read once. Each step's logits are
    reduced to two floats immediately. Raises `NotFiniteError` where the model yields NaN or
    infinite logits.
    """
    ending = AnswerEnd(ends, stops, max_new_tokens)
    answers = [Answer() for _ in range(len(prompts) * copies)]
    at_once = max(1, (slots or len(answers)) // copies)
    look_every = LOOK_EVERY.get(model.device.type, 1)
    shared = shared_prefix(model, prompts)

    def emit(logits: torch.Tensor, rows: list[int], ahead: int) -> StepTrace:
        if choose is None:
            return capture(logits)
        lengths = [len(answers[row].token_ids) + ahead for row in rows]
        return capture(logits, choose(logits, rows, lengths))

    def look(rows: list[int], steps: list[StepTrace]) -> None:
        columns = (torch.stack(column).tolist() for column in zip(*steps, strict=True))
        for step in zip(*columns, strict=True):
            for row, token, *values in zip(rows, *step, strict=True):
                if answers[row].finish_reason is None:
                    if not all(map(math.isfinite, values)):
                        where = f"token {len(answers[row].token_ids) + 1} of its answer"
                        raise NotFiniteError(row // copies, where)
                    ending.extend(answers[row], token, *values)

    def begin(first: int) -> GrowingBatch:
        """Read the prompts from `first` on, and choose their answers' first tokens."""
        context, ids = padded_context(model, prompts[first : first + at_once], shared)
        logits = context.read(ids)
        rows = [row for row in range(len(ids)) for _ in range(copies)]
        begun = list(range(first * copies, (first + len(ids)) * copies))
        step = emit(logits[rows] if copies > 1 else logits, begun, 0)
        look(begun, [step])
        return GrowingBatch(context, begun, rows, step[0])

    def unfinished(batch: GrowingBatch) -> list[int]:
        return [i for i, row in enumerate(batch.answers) if answers[row].finish_reason is None]

    live = ready = GrowingBatch(Context(model, []), [], [], torch.empty(0, device=model.device))
    splices = live.context.splices
    next_prompt, spare = 0, []  # the first unread prompt; the answers of `ready` that wait
    unseen: list[StepTrace] = []  # steps since the last look
    while True:
        growing = unfinished(live)
        if len(growing) <= (1 - REFILL_SHARE) * len(live.answers):
            waiting, free = [], at_once * copies - len(growing)
            if growing and not splices:
                free = 0
            while free and (spare or next_prompt < len(prompts)):
                if spare:
                    waiting.append((ready, spare[:free]))
                    free, spare = free - len(spare[:free]) if splices else 0, spare[free:]
                else:
                    ready, next_prompt = begin(next_prompt), next_prompt + at_once
                    spare = unfinished(ready)
            live = joined(live, growing, waiting)
            if live is None:
                return answers
        unseen.append(emit(live.context.read(live.tokens[:, None]), live.answers, len(unseen)))
        live.tokens = unseen[-1][0]
        if len(unseen) == look_every:
            look(live.answers, unseen)
            unseen = []


def answer_task(
    model: PreTrainedModel,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    asking: PromptSettings,
    batch_size: int,
    keep: Keep = forget,
    decode: Decode = decode,
) -> list[Row]:
    """Decode every prompt greedily into a row of the traces file; finished rows go to `keep`.

    `decode` belongs to the engine that loaded `model`.
    """
    ends, stops = end_tokens(model, tokenizer), StopStrings(tokenizer, asking.stop)

    def work(batch: list[Prompt], size: int) -> list[Row]:
        ids = [prompt["prompt_token_ids"] for prompt in batch]
        answers = decode(model, ids, ends, stops, asking.max_new_tokens, slots=size)
        return [
            {
                **prompt,
                **vars(answer),
                "answer": stops.decode(answer.token_ids),
                "tokens": token_texts(tokenizer, answer.token_ids),
            }
            for prompt, answer in zip(batch, answers, strict=True)
        ]

    return in_waves(prompts, batch_size, "answers", work, keep)
