"""The tokens before a step: a padded batch and its KV cache."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from tracecal.capture.roomy_cache import ROOM, RoomyLayer, _new_cache

# Shortest shared prefix, in tokens, that is worth a separate forward pass
WORTH_SHARING = 8


class Context:
    """A batch of rows and their cache; `pads` counts the padding columns left of each row."""

    def __init__(self, model: PreTrainedModel, pads: Sequence[int]) -> None:
        self.model = model
        self.cache = _new_cache(model)
        self.width = 0
        self._pad(pads)

    def _pad(self, pads: Sequence[int]) -> None:
        self.pads = list(pads)
        self.left = torch.tensor(self.pads, device=self.model.device)

    @property
    def splices(self) -> bool:
        """Whether rows of other contexts can join: all layers must have columns."""
        return all(isinstance(layer, RoomyLayer) for layer in self.cache.layers)

    def read(self, ids: torch.Tensor) -> torch.Tensor:
        """Read `ids` [rows, new]; return the next tokens' raw logits [rows, vocabulary].

        Nothing processes the logits: no penalty, temperature or minimum length of a generation
        config applies.
        """
        return self._forward(self.model, ids, logits_to_keep=1).logits[:, -1]

    def read_last(self, ids: torch.Tensor, count: int) -> torch.Tensor:
        """Read `ids`; return the raw logits [rows, count, vocabulary] after the last `count`."""
        return self._forward(self.model, ids, logits_to_keep=count).logits

    def read_hidden(self, ids: torch.Tensor, layer: int) -> torch.Tensor:
        """Read `ids`; return the hidden state [rows, width] of the last one after `layer`."""
        output = self._forward(self.model.base_model, ids, output_hidden_states=True)
        return output.hidden_states[layer][:, -1]

    def _forward(self, model: torch.nn.Module, ids: torch.Tensor, **options: object) -> ModelOutput:
        self.width += ids.shape[1]
        columns = torch.arange(self.width, device=ids.device)
        mask = (columns >= self.left[:, None]).long() if any(self.pads) else None
        positions = (columns[-ids.shape[1] :] - self.left[:, None]).clamp(min=0)
        return model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            **options,
        )

    def length(self, row: int) -> int:
        """How many tokens of a row were read."""
        return self.width - self.pads[row]

    def select(self, rows: Sequence[int]) -> "Context":
        """A context of these rows, in this order; a row may be repeated."""
        if self.splices:
            return gathered([(self, row) for row in rows])
        self.keep(rows)
        return self

    def keep(self, rows: Sequence[int]) -> None:
        """As `select`, in place, of no more rows than there are."""
        if self.splices:
            return self.rearrange([(self, row) for row in rows])
        self.cache.batch_select_indices(self._indices(rows))
        self._pad([self.pads[row] for row in rows])

    def rearrange(self, sources: Sequence["Source"]) -> None:
        """Let each place hold its source; there are at most as many as rows.

        In place: what stays is not copied. Rows of other contexts have no more tokens than this
        one has columns.
        """
        moved: dict[Context, list[int]] = {}
        for place, source in enumerate(sources):
            if source != (self, place):
                moved.setdefault(source[0], []).append(place)
        moves = [
            (context, self._indices(places), self._indices([sources[place][1] for place in places]))
            for context, places in moved.items()
        ]
        for number, layer in enumerate(self.cache.layers):
            if layer.is_initialized:
                parts = [
                    (places, context.cache.layers[number].rows(rows, self.width))
                    for context, places, rows in moves
                ]
                layer.put(parts, len(sources))
        self._pad([self.width - context.length(row) for context, row in sources])

    def _indices(self, rows: Sequence[int]) -> torch.Tensor:
        return torch.tensor(rows, device=self.left.device)


Source = tuple[Context, int]  # a context and one of its rows


def gathered(sources: Sequence[Source]) -> Context:
    """Rows of contexts that splice, in a new one, without columns that are padding everywhere."""
    first = sources[0][0]
    whole = Context(first.model, [0] * len(sources))
    whole.width = max(context.length(row) for context, row in sources)
    for layer, held in zip(whole.cache.layers, first.cache.layers, strict=True):
        if held.is_initialized:
            like = held.keys, held.values
            layer.make_room(like, len(sources), whole.width, whole.width + ROOM)
            for states in (layer.keys, layer.values):
                states.zero_()  # what a mask hides must still be finite
    whole.rearrange(sources)
    return whole


def refilled(
    context: Context, kept: Sequence[int], joining: Sequence[Source]
) -> tuple[Context, list[int]]:
    """Rows of a context that splices, and rows of others; and which of both each of them is.

    The context itself where that is possible and its columns are not largely padding by then:
    what joins takes the places of what left. Otherwise a new one.
    """
    order = in_place(kept, len(joining))
    rows = [*((context, row) for row in kept), *joining]
    sources = [rows[number] for number in order]
    width = max(part.length(row) for part, row in sources)
    if len(sources) <= len(context.pads) and width <= context.width <= width + ROOM:
        context.rearrange(sources)
        return context, order
    return gathered(sources), order


def in_place(kept: Sequence[int], joining: int = 0) -> list[int]:
    """An order of the `kept` places, then those `joining` them, in which most keep their place."""
    count = len(kept) + joining
    staying = {place: number for number, place in enumerate(kept) if place < count}
    moving = iter(sorted({*range(count)} - {*staying.values()}))
    return [staying[place] if place in staying else next(moving) for place in range(count)]


def shared_prefix(model: PreTrainedModel, prompts: Sequence[list[int]]) -> Context | None:
    """The common prefix of `prompts`, read once; None where it is short or there is one prompt.

    At least one token of each prompt is left to read.
    """
    same = [len(set(tokens)) == 1 for tokens in zip(*prompts, strict=False)]
    length = min([*same, False].index(False), len(same) - 1)
    if len(prompts) == 1 or length < WORTH_SHARING:
        return None
    context = Context(model, [0])
    if not context.splices:
        return None
    context._forward(model.base_model, torch.tensor([prompts[0][:length]], device=model.device))
    return context


def padded_context(
    model: PreTrainedModel, prompts: Sequence[list[int]], shared: Context | None = None
) -> tuple[Context, torch.Tensor]:
    """A context for `prompts`, and the ids [prompts, columns] that it has yet to read.

    It starts with the cache of `shared`, shifted right by each row's padding, so that no padding
    separates a prompt's tokens; tokens shifted out of the shared columns are read again.
    """
    longest = max(map(len, prompts))
    pads = [longest - len(ids) for ids in prompts]
    context, known = Context(model, pads), shared.width if shared else 0
    if shared:
        source = (torch.arange(known, device=model.device) - context.left[:, None]).clamp(min=0)
        for layer, given in zip(context.cache.layers, shared.cache.layers, strict=True):
            if given.is_initialized:
                keys, values = (held[0][:, source] for held in (given.keys, given.values))
                layer.hold((keys.transpose(0, 1), values.transpose(0, 1)), longest + ROOM)
        context.width = known
    # Any padding id will do: the mask hides it, and no answer is filtered by it.
    rows = [[0] * pad + ids for pad, ids in zip(pads, prompts, strict=True)]
    return context, torch.tensor([row[known:] for row in rows], device=model.device)
