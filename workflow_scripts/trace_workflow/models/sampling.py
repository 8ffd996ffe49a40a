"""Sampled answers to a task's prompts, as rows of the samples file."""

import pyarrow as pa
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.decoding import Decode, decode
from tracecal.capture.batches import Keep, Prompt, forget, in_waves
from tracecal.capture.draws import Draws
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.tokens import end_tokens
from tracecal.io.journal import Row

SAMPLES = pa.schema(
    {
        "example_id": pa.string(),
        "sample": pa.int32(),
        "token_ids": pa.list_(pa.int32()),
        "surprisal": pa.list_(pa.float32()),
        "text": pa.string(),
    }
)


def sample_task(
    model: PreTrainedModel,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    asking: PromptSettings,
    batch_size: int,
    answers: int,
    temperature: float,
    seed: int,
    keep: Keep = forget,
    decode: Decode = decode,
) -> list[Row]:
    """`answers` ancestral samples per prompt, one row of the samples file each.

    All of a prompt's rows go to `keep` together. `batch_size` counts answers, as it does in greedy
    decoding. Surprisals are at temperature 1, whatever the `temperature` of the draws. `decode`
    belongs to the engine that loaded `model`.
    """
    ends, stops = end_tokens(model, tokenizer), StopStrings(tokenizer, asking.stop)

    def work(batch: list[Prompt], size: int) -> list[Row]:
        draws = [(prompt["example_id"], k) for prompt in batch for k in range(answers)]
        keys = [f"{seed}\x1f{example}\x1f{k}" for example, k in draws]
        samples = decode(
            model,
            [prompt["prompt_token_ids"] for prompt in batch],
            ends,
            stops,
            asking.max_new_tokens,
            Draws(keys, temperature),
            copies=answers,
            slots=size * answers,
        )
        return [
            {
                "example_id": example,
                "sample": k,
                "token_ids": answer.token_ids,
                "surprisal": answer.surprisal,
                "text": stops.decode(answer.token_ids),
            }
            for (example, k), answer in zip(draws, samples, strict=True)
        ]

    return in_waves(prompts, max(1, batch_size // answers), "prompts", work, keep)
