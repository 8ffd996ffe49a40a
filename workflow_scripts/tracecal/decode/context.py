"""What a model has read: rows of tokens, padded on the left to one width, and their cache."""

from collections.abc import Sequence

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer
from transformers.modeling_outputs import ModelOutput

# Columns by which a cache grows, so that not every step copies it
ROOM = 64
# What prompts share is read once from this many tokens on; less is not worth a pass of its own.
WORTH_SHARING = 8


Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values


class RoomyLayer(DynamicLayer):
    """Keys and values [rows, heads, columns, width] of one layer, with room for columns to come.

    It keeps every column, those outside a sliding window too: masks hide them.
    """

    room = (torch.empty(0, 0, 0, 0),) * 2  # what `keys` and `values` are the first columns of

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs
    ) -> tuple[torch.Tensor, torch.Tensor]:
        past = self.get_seq_length()
        width = past + key_states.shape[2]
        if width > self.room[0].shape[2]:
            none = key_states[:, :, :0], value_states[:, :, :0]
            self.hold([(self.keys, self.values) if past else none], past, width + ROOM)
        keys, values = self.room
        keys[:, :, past:width] = key_states
        values[:, :, past:width] = value_states
        self.keys, self.values = keys[:, :, :width], values[:, :, :width]
        return self.keys, self.values

    def hold(self, parts: Sequence[Pair], width: int, room: int) -> None:
        """Hold the rows of all `parts` in `width` columns, narrower ones padded on the left, in
        place of what was held, with room for `room` columns.
        """
        self.lazy_initialization(*parts[0])
        self.room = tuple(_aligned(states, width, room) for states in zip(*parts, strict=True))
        self.keys, self.values = (held[:, :, :width] for held in self.room)


def _aligned(parts: Sequence[torch.Tensor], width: int, room: int) -> torch.Tensor:
    _, heads, _, size = parts[0].shape
    counts = [len(part) for part in parts]
    out = parts[0].new_empty(sum(counts), heads, room, size)
    for place, part in zip(out[:, :, :width].split(counts), parts, strict=True):
        padding = width - part.shape[2]
        place[:, :, :padding] = 0  # what a mask hides must still be finite
        place[:, :, padding:] = part
    return out


def _new_cache(model: PreTrainedModel) -> Cache:
    cache = DynamicCache(config=model.config)
    if {type(layer) for layer in cache.layers} <= {DynamicLayer, DynamicSlidingWindowLayer}:
        return Cache(layers=[RoomyLayer() for _ in cache.layers])
    return cache  # of a model with recurrent layers, say, whose state has no columns


class Context:
    """Rows that a model has read together; `pads` counts the columns of padding left of each."""

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
        """Whether rows of other contexts can join, as they can where all layers have columns."""
        return all(isinstance(layer, RoomyLayer) for layer in self.cache.layers)

    def read(self, ids: torch.Tensor) -> torch.Tensor:
        """Raw logits [rows, vocabulary] of the tokens after `ids` [rows, new], which are read.

        Nothing processes the logits: no penalty, temperature or minimum length of a generation
        config can bend them.
        """
        return self._forward(self.model, ids, logits_to_keep=1).logits[:, -1]

    def read_last(self, ids: torch.Tensor, count: int) -> torch.Tensor:
        """Raw logits [rows, count, vocabulary] after each of the last of `ids`, which are read."""
        return self._forward(self.model, ids, logits_to_keep=count).logits

    def read_hidden(self, ids: torch.Tensor, layer: int) -> torch.Tensor:
        """The hidden state [rows, width] after `layer` of the last of `ids`, which are read."""
        output = self._forward(self.model.base_model, ids, output_hidden_states=True)
        return output.hidden_states[layer][:, -1]

    def _forward(self, model: torch.nn.Module, ids: torch.Tensor, **wanted: object) -> ModelOutput:
        self.width += ids.shape[1]
        columns = torch.arange(self.width, device=ids.device)
        # Without padding there is no mask to make.
        mask = (columns >= self.left[:, None]).long() if any(self.pads) else None
        positions = (columns[-ids.shape[1] :] - self.left[:, None]).clamp(min=0)
        return model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            **wanted,
        )

    def select(self, rows: Sequence[int]) -> "Context":
        """These rows, in this order; a row may stand several times."""
        if self.splices:
            return gathered([(self, rows)])
        self.cache.batch_select_indices(torch.tensor(rows, device=self.left.device))
        self._pad([self.pads[row] for row in rows])
        return self


def gathered(parts: Sequence[tuple[Context, Sequence[int]]]) -> Context:
    """These rows of contexts that splice, in one, without columns that are padding everywhere."""
    lengths = [[context.width - context.pads[row] for row in rows] for context, rows in parts]
    width = max(map(max, lengths))
    pads = [width - length for part in lengths for length in part]
    first = parts[0][0]
    whole = Context(first.model, pads)
    whole.width = width
    indices = [torch.tensor(rows, device=first.left.device) for _, rows in parts]
    for number, layer in enumerate(whole.cache.layers):
        held = [context.cache.layers[number] for context, _ in parts]
        if held[0].is_initialized:
            taken = [
                (one.keys[index, :, -width:], one.values[index, :, -width:])
                for one, index in zip(held, indices, strict=True)
            ]
            layer.hold(taken, width, width + ROOM)
    return whole


def shared_prefix(model: PreTrainedModel, prompts: Sequence[list[int]]) -> Context | None:
    """What all `prompts` begin with, read once; None where that is little or one prompt.

    A token of each prompt is always left to read.
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


def started(
    model: PreTrainedModel, prompts: Sequence[list[int]], shared: Context | None = None
) -> tuple[Context, torch.Tensor]:
    """A context for `prompts` and the ids [prompts, columns] that it has still to read.

    It holds what `shared` has read. A row's place is its columns counted from the right, so the
    shared columns are shifted by each row's padding, and what would stand beyond them is read
    again: that way no padding comes between a prompt's tokens.
    """
    longest = max(map(len, prompts))
    pads = [longest - len(ids) for ids in prompts]
    context, known = Context(model, pads), shared.width if shared else 0
    if shared:
        source = (torch.arange(known, device=model.device) - context.left[:, None]).clamp(min=0)
        for layer, given in zip(context.cache.layers, shared.cache.layers, strict=True):
            if given.is_initialized:
                keys, values = (held[0][:, source] for held in (given.keys, given.values))
                layer.hold([(keys.transpose(0, 1), values.transpose(0, 1))], known, longest + ROOM)
        context.width = known
    # The padding id is arbitrary: the mask hides it and no answer is ever filtered by it.
    rows = [[0] * pad + ids for pad, ids in zip(pads, prompts, strict=True)]
    return context, torch.tensor([row[known:] for row in rows], device=model.device)
