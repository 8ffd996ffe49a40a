"""Traces from one's own ``generate`` of Transformers.

    with Attached(model) as attached:
        output = model.generate(**inputs, max_new_tokens=64, do_sample=False)
    answers = attached.answers(output)

Logits are read in the model's forward pass, before any penalty or temperature changes them.
"""

from typing import Any

import torch
from transformers import PreTrainedModel

from tracecal.capture.capture import Answer, capture
from tracecal.errors import InputError


class Attached:
    """Records surprisals and entropies while a model generates; holds one step's logits.

    >>> model, tokenizer = getfixture("tiny_model")
    >>> inputs = tokenizer("What is 1 + 1?", return_tensors="pt", return_token_type_ids=False)
    >>> with Attached(model) as attached:
    ...     output = model.generate(**inputs, max_new_tokens=4, do_sample=False)
    >>> (answer,) = attached.answers(output)
    >>> len(answer.surprisal) == len(answer.entropy) == len(answer.token_ids)
    True
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.surprisal: list[torch.Tensor] = []
        self.entropy: list[torch.Tensor] = []
        self.last: torch.Tensor | None = None  # logits whose token is not known yet

    def __enter__(self) -> "Attached":
        self.hook = self.model.register_forward_hook(self._after_forward, with_kwargs=True)
        return self

    def __exit__(self, *error: object) -> None:
        self.hook.remove()

    def _after_forward(
        self, model: PreTrainedModel, args: Any, kwargs: dict[str, Any], output: Any
    ) -> None:
        ids = kwargs.get("input_ids", args[0] if args else None)
        if self.last is not None:
            if ids is None or ids.shape != (len(self.last), 1):
                raise InputError(
                    "the model's input was not one token per answer: traces are captured only of "
                    "plain greedy decoding or sampling, one generate() call at a time."
                )
            self._read(ids[:, -1])
        self.last = output.logits[:, -1].detach()

    def _read(self, tokens: torch.Tensor) -> None:
        _, surprisal, entropy = capture(self.last, tokens)
        self.surprisal.append(surprisal)
        self.entropy.append(entropy)

    def answers(self, output: Any) -> list[Answer]:
        """The answers in `output` of ``generate``, each through the token that ends it.

        Raises `InputError` where they are not the answers whose logits were recorded.
        """
        sequences = getattr(output, "sequences", output)
        if self.last is None or len(sequences) != len(self.last):
            raise InputError(
                "generate() returned other answers than it computed step by step: use greedy "
                "decoding or sampling; beam search and assisted generation choose tokens later."
            )
        if len(self.surprisal) < sequences.shape[1]:
            self._read(sequences[:, -1])
            self.last = None
        steps = len(self.surprisal)
        values = [torch.stack(row, dim=1).tolist() for row in (self.surprisal, self.entropy)]
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
