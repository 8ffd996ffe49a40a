"""Traces from one's own `generate` of Transformers.

    with Attached(model) as attached:
        output = model.generate(**inputs, max_new_tokens=64, do_sample=False)
    answers = attached.answers(output)

The model's forward pass is watched, whose logits no penalty or temperature has bent yet.
"""

from typing import Any

import torch
from transformers import PreTrainedModel

from tracecal.decode.capture import capture
from tracecal.decode.greedy import Answer
from tracecal.errors import InputError


class Attached:
    """Watches what a model computes while it generates, one step's logits at a time."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.surprisal: list[torch.Tensor] = []
        self.entropy: list[torch.Tensor] = []
        self.last: torch.Tensor | None = None  # logits whose token is not chosen yet

    def __enter__(self) -> "Attached":
        self.hook = self.model.register_forward_hook(self._seen, with_kwargs=True)
        return self

    def __exit__(self, *error: object) -> None:
        self.hook.remove()

    def _seen(self, model: PreTrainedModel, args: Any, given: dict[str, Any], output: Any) -> None:
        ids = given.get("input_ids", args[0] if args else None)
        if self.last is not None:
            if ids is None or ids.shape != (len(self.last), 1):
                raise InputError(
                    "the model was not given one token of each answer: traces are captured of "
                    "plain greedy decoding or sampling, one generate() at a time."
                )
            self._read(ids[:, -1])
        self.last = output.logits[:, -1].detach()

    def _read(self, tokens: torch.Tensor) -> None:
        _, surprisal, entropy = capture(self.last, tokens)
        self.surprisal.append(surprisal)
        self.entropy.append(entropy)

    def answers(self, output: Any) -> list[Answer]:
        """The answers of what `generate` returned, each through the token that ends it.

        Raises `InputError` where there are not as many tokens as steps were watched.
        """
        sequences = getattr(output, "sequences", output)
        if self.last is None or len(sequences) != len(self.last):
            raise InputError(
                "generate() returned other answers than were watched: beam search and assisted "
                "generation choose tokens later than they are computed."
            )
        if len(self.surprisal) < sequences.shape[1]:
            self._read(sequences[:, -1])
            self.last = None
        steps = len(self.surprisal)
        values = [torch.stack(one, dim=1).tolist() for one in (self.surprisal, self.entropy)]
        ends = self.model.generation_config.eos_token_id
        ends = {ends} if isinstance(ends, int) else set(ends or ())
        return [
            _until_end(Answer(tokens, surprisal, entropy, "length"), ends)
            for tokens, surprisal, entropy in zip(
                sequences[:, -steps:].tolist(), *values, strict=True
            )
        ]


def _until_end(answer: Answer, ends: set[int]) -> Answer:
    """An answer without the padding after its end."""
    count = next((t for t, token in enumerate(answer.token_ids, 1) if token in ends), None)
    if count is None:
        return answer
    lists = (answer.token_ids, answer.surprisal, answer.entropy)
    return Answer(*(values[:count] for values in lists), "eos")
