"""A KV cache with spare columns, so that it grows without copies and rows can move."""

from collections.abc import Sequence

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer

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
