"""The context of a step: a padded batch of rows and their KV cache.

`padded_context(model, prompts)` starts one, `Context.read(ids)` reads tokens and returns logits,
and `refilled` replaces finished rows by rows of another context. The cache has spare columns
(`RoomyLayer`), so that it grows without copies and rows can move.
"""

from collections.abc import Sequence

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer
from transformers.modeling_outputs import ModelOutput

# Shortest shared prefix, in tokens, that is worth a separate forward pass.
WORTH_SHARING = 8
# Columns by which a cache grows at a time, so that it is rarely copied.
ROOM = 64
Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values


class RoomyLayer(DynamicLayer):
    """Keys and values [rows, heads, columns, head size] of one layer, with spare columns.

    Columns outside a sliding window stay, and masks hide them.
    """

    room = (torch.empty(0, 0, 0, 0),) * 2  # buffers whose first columns are `keys` and `values`

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs
    ) -> tuple[torch.Tensor, torch.Tensor]:
        past = self.get_seq_length()
        width = past + key_states.shape[2]
        if width > self.room[0].shape[2]:
            none = key_states[:, :, :0], value_states[:, :, :0]
            self.hold((self.keys, self.values) if past else none, width + ROOM)
        keys, values = self.room
        keys[:, :, past:width] = key_states
        values[:, :, past:width] = value_states
        self._show(width)
        return self.keys, self.values

    def hold(self, states: Pair, room: int) -> None:
        """Replace the states, with room for `room` columns."""
        width = states[0].shape[2]
        self.make_room(states, len(states[0]), width, room)
        for buffer, part in zip(self.room, states, strict=True):
            buffer[:, :, :width] = part

    def make_room(self, like: Pair, rows: int, width: int, room: int) -> None:
        """Allocate `rows` rows; memory is committed on first write."""
        self.lazy_initialization(*like)
        self.room = tuple(part.new_empty(rows, part.shape[1], room, part.shape[3]) for part in like)
        self._show(width)

    def rows(self, indices: torch.Tensor, columns: int) -> Pair:
        """Copies of rows, with at most their last `columns` columns."""
        return self.keys[indices, :, -columns:], self.values[indices, :, -columns:]

    def put(self, parts: Sequence[tuple[torch.Tensor, Pair]], rows: int) -> None:
        """Write states, aligned on the right, into rows; keep only the first `rows` rows."""
        width = self.get_seq_length()
        self.room = tuple(buffer[:rows] for buffer in self.room)
        for places, states in parts:
            for buffer, part in zip(self.room, states, strict=True):
                buffer[:, :, width - part.shape[2] : width].index_copy_(0, places, part)
        self._show(width)

    def _show(self, width: int) -> None:
        self.keys, self.values = (buffer[:, :, :width] for buffer in self.room)


def new_cache(model: PreTrainedModel) -> Cache:
    cache = DynamicCache(config=model.config)
    if {type(layer) for layer in cache.layers} <= {DynamicLayer, DynamicSlidingWindowLayer}:
        return Cache(layers=[RoomyLayer() for _ in cache.layers])
    return cache  # for example, the state of recurrent layers has no columns


class Context:
    """A batch of rows and their cache; `pads` counts the padding columns left of each row."""

    def __init__(self, model: PreTrainedModel, pads: Sequence[int]) -> None:
        self.model = model
        self.cache = new_cache(model)
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
        """Read `ids` [rows, new]; return the raw logits [rows, vocabulary] of the next tokens.

        No penalty, temperature or minimum length of a generation config applies.
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
        """The number of tokens of a row."""
        return self.width - self.pads[row]

    def select(self, rows: Sequence[int]) -> "Context":
        """A context of these rows, in this order; a row may be repeated."""
        if self.splices:
            return gathered([(self, row) for row in rows])
        self.keep(rows)
        return self

    def keep(self, rows: Sequence[int]) -> None:
        """As `select`, in place; no row may be repeated beyond the number of rows."""
        if self.splices:
            return self.rearrange([(self, row) for row in rows])
        self.cache.batch_select_indices(self._indices(rows))
        self._pad([self.pads[row] for row in rows])

    def rearrange(self, sources: Sequence["Source"]) -> None:
        """Fill each place with its source, in place; there are at most as many as rows.

        Rows that stay are not copied. Rows of other contexts have no more tokens than this context
        has columns.
        """
        moved: dict[Context, list[int]] = {}
        for row, source in enumerate(sources):
            if source != (self, row):
                moved.setdefault(source[0], []).append(row)
        moves = [
            (context, self._indices(places), self._indices([sources[row][1] for row in places]))
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
    """A new context of rows of others that splice, without columns of padding alone."""
    first = sources[0][0]
    context = Context(first.model, [0] * len(sources))
    context.width = max(source.length(row) for source, row in sources)
    for layer, like in zip(context.cache.layers, first.cache.layers, strict=True):
        if like.is_initialized:
            states = like.keys, like.values
            layer.make_room(states, len(sources), context.width, context.width + ROOM)
            for buffer in (layer.keys, layer.values):
                buffer.zero_()  # what a mask hides must still be finite
    context.rearrange(sources)
    return context


def refilled(
    context: Context, staying: Sequence[int], joining: Sequence[Source]
) -> tuple[Context, list[int]]:
    """Keep the rows `staying` of a context that splices, and add rows of others.

    Returns the context and the order of its rows, numbered as staying rows, then joining ones. It
    is the context itself where joining rows fit into the places of rows that left, and its columns
    are not largely padding by then; otherwise a new one.
    """
    order = in_place(staying, len(joining))
    rows = [*((context, row) for row in staying), *joining]
    sources = [rows[number] for number in order]
    width = max(part.length(row) for part, row in sources)
    if len(sources) <= len(context.pads) and width <= context.width <= width + ROOM:
        context.rearrange(sources)
        return context, order
    return gathered(sources), order


def in_place(rows: Sequence[int], n_joining: int = 0) -> list[int]:
    """Order the places `rows`, then `n_joining` new ones, so that most rows keep their place.

    >>> in_place([0, 2], 1)
    [0, 2, 1]
    """
    n_rows = len(rows) + n_joining
    number_of = {row: number for number, row in enumerate(rows) if row < n_rows}
    moving = iter(sorted({*range(n_rows)} - {*number_of.values()}))
    return [number_of[row] if row in number_of else next(moving) for row in range(n_rows)]


def shared_prefix(model: PreTrainedModel, prompts: Sequence[list[int]]) -> Context | None:
    """Read the common prefix of `prompts` once; None where it is short or there is one prompt.

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
    """Start a context for `prompts`, and return the ids [prompts, columns] yet to be read.

    It starts with the cache of `shared`, shifted right by the padding of each row, so that no
    padding separates the tokens of a prompt; tokens shifted out of the shared columns are read
    again.
    """
    longest = max(map(len, prompts))
    pads = [longest - len(ids) for ids in prompts]
    context, n_shared = Context(model, pads), shared.width if shared else 0
    if shared:
        source = (torch.arange(n_shared, device=model.device) - context.left[:, None]).clamp(min=0)
        for layer, prefix in zip(context.cache.layers, shared.cache.layers, strict=True):
            if prefix.is_initialized:
                keys, values = (states[0][:, source] for states in (prefix.keys, prefix.values))
                layer.hold((keys.transpose(0, 1), values.transpose(0, 1)), longest + ROOM)
        context.width = n_shared
    # Any padding id will do: the mask hides it, and no answer is filtered by it.
    rows = [[0] * pad + ids for pad, ids in zip(pads, prompts, strict=True)]
    return context, torch.tensor([row[n_shared:] for row in rows], device=model.device)
