"""Hidden states of the last prompt token: one prefill pass per prompt, nothing generated."""

import pyarrow as pa
import torch
from transformers import PreTrainedModel

from tracecal.capture.batches import Keep, NotFiniteError, Prompt, forget, in_batches
from tracecal.capture.context import padded_context, shared_prefix
from tracecal.io.journal import Row

HIDDEN = pa.schema(
    {"example_id": pa.string(), "layer": pa.int32(), "hidden": pa.list_(pa.float32())}
)


def layer_at(depth: float, layers: int) -> int:
    """The layer at a relative `depth` in [0, 1]; layer 0 is the embeddings."""
    return round(depth * layers)


def hidden_task(
    model: PreTrainedModel,
    prompts: list[Prompt],
    depth: float,
    batch_size: int,
    keep: Keep = forget,
) -> list[Row]:
    """One row of the hidden-states file per prompt; finished rows go to `keep`."""
    layer = layer_at(depth, model.config.get_text_config().num_hidden_layers)

    def work(batch: list[Prompt]) -> list[Row]:
        states = last_states(model, [prompt["prompt_token_ids"] for prompt in batch], layer)
        return [
            {"example_id": prompt["example_id"], "layer": layer, "hidden": state}
            for prompt, state in zip(batch, states.cpu().numpy(), strict=True)
        ]

    return in_batches(prompts, batch_size, "prompts", work, keep)


@torch.inference_mode()
def last_states(model: PreTrainedModel, prompts: list[list[int]], layer: int) -> torch.Tensor:
    """The last token's hidden state after `layer`, float32 [prompts, width].

    As in Transformers, the last layer's states come after the final norm. No logits are computed.
    Raises `NotFiniteError` where a state is not finite.
    """
    context, ids = padded_context(model, prompts, shared_prefix(model, prompts))
    states = context.read_hidden(ids, layer).float()
    if not (finite := states.isfinite().all(-1)).all():
        raise NotFiniteError(finite.tolist().index(False), f"hidden state of layer {layer}")
    return states
