"""The tokens before a step: the padded batch's KV cache, and stop strings at the answer's end."""

from collections.abc import Sequence
from functools import cache

import torch
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer
from transformers.modeling_outputs import ModelOutput

# Columns by which a cache grows at a time, so that it is rarely copied
ROOM = 64
# Shortest shared prefix, in tokens, that is worth a separate forward pass
WORTH_SHARING = 8

Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values


class RoomyLayer(DynamicLayer):
    """Keys and values [rows, heads, columns, head size] of one layer, with spare columns.

    Columns outside a sliding window are kept too: masks hide them.
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
        """Hold these states in place of what was held, with room for `room` columns."""
        width = states[0].shape[2]
        self.make_room(states, len(states[0]), width, room)
        for held, part in zip(self.room, states, strict=True):
            held[:, :, :width] = part

    def make_room(self, like: Pair, rows: int, width: int, room: int) -> None:
        """Hold `rows` rows, not yet written: memory is committed on first write."""
        self.lazy_initialization(*like)
        self.room = tuple(part.new_empty(rows, part.shape[1], room, part.shape[3]) for part in like)
        self._show(width)

    def rows(self, indices: torch.Tensor, columns: int) -> Pair:
        """Copies of rows, of at most their last `columns` columns."""
        return self.keys[indices, :, -columns:], self.values[indices, :, -columns:]

    def put(self, parts: Sequence[tuple[torch.Tensor, Pair]], rows: int) -> None:
        """Put states, aligned on the right, at these places; hold the first `rows` places alone."""
        width = self.get_seq_length()
        self.room = tuple(held[:rows] for held in self.room)
        for places, states in parts:
            for held, part in zip(self.room, states, strict=True):
                held[:, :, width - part.shape[2] : width].index_copy_(0, places, part)
        self._show(width)

    def _show(self, width: int) -> None:
        self.keys, self.values = (held[:, :, :width] for held in self.room)


def _new_cache(model: PreTrainedModel) -> Cache:
    cache = DynamicCache(config=model.config)
    if {type(layer) for layer in cache.layers} <= {DynamicLayer, DynamicSlidingWindowLayer}:
        return Cache(layers=[RoomyLayer() for _ in cache.layers])
    return cache  # for example, the state of recurrent layers has no columns


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


# Stop strings: where an answer ends although the model would continue.


class StopStrings:
    """Finds the token in which a stop string begins, without re-tokenising text."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, strings: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.strings = tuple(strings)
        self._alone = cache(lambda token: self.decode([token]))
        # A stop string spans at most one token per byte. The 8 tokens before it are decoded too,
        # since a token's text can depend on the beginning of the text or of a character.
        self._reach = 8 + max((len(string.encode()) for string in self.strings), default=0)

    def cut(self, token_ids: Sequence[int]) -> int | None:
        """How many tokens to keep, through the one in which the earliest stop string begins.

        None where no stop string ends in the last token: call it after every token.
        """
        if not self.strings:
            return None
        if not self._may_complete(token_ids[-1]) or not self._starts(self._tail(token_ids)):
            return None
        starts = self._starts(token_ids)
        if not starts:
            return None
        through = self.decode(token_ids)[: min(starts) + 1]
        return next(
            count
            for count in range(1, len(token_ids) + 1)
            if self.decode(token_ids[:count]).startswith(through)
        )

    def _may_complete(self, token: int) -> bool:
        """Whether `token` may write a stop string's last character.

        A token of part of a character's bytes may complete any character, and a token decoded alone
        may lose a space.
        """
        text = self._alone(token)
        return any(
            last in text or last == " " or "\ufffd" in text
            for last in (string[-1] for string in self.strings)
        )

    def _tail(self, token_ids: Sequence[int]) -> Sequence[int]:
        """As many of the last tokens as a stop string can span; special tokens have no text."""
        place, count = len(token_ids), 0
        while place and count < self._reach:
            place -= 1
            count += bool(self._alone(token_ids[place]))
        return token_ids[place:]

    def _starts(self, token_ids: Sequence[int]) -> list[int]:
        text = self.decode(token_ids)
        return [start for string in self.strings if (start := text.find(string)) >= 0]

    def decode(self, token_ids: Sequence[int]) -> str:
        return self.tokenizer.decode(
            token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
