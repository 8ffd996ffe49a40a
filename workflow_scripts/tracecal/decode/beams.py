"""Beams of a whole task: prompts in, rows of the beams file out."""

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.decode.batching import Keep, Prompt, forget, in_batches
from tracecal.decode.beam import search_beams
from tracecal.decode.model import end_tokens
from tracecal.decode.stopping import StopStrings
from tracecal.storage.journal import Row
from tracecal.tasks.asking import Asking


def beam_task(
    model: PreTrainedModel,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    asking: Asking,
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
