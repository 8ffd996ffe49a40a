"""Ancestral sampling whose draws depend on nothing but what is sampled."""

import pyarrow as pa
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.decode.batching import Keep, Prompt, forget, in_waves
from tracecal.decode.draws import Draws
from tracecal.decode.greedy import Answer, Decode, decode
from tracecal.decode.model import end_tokens
from tracecal.decode.stopping import StopStrings
from tracecal.storage.journal import Row
from tracecal.tasks.asking import Asking

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
    tokenizer: PreTrainedTokenizerBase,
    prompts: list[Prompt],
    asking: Asking,
    batch_size: int,
    answers: int,
    temperature: float,
    seed: int,
    keep: Keep = forget,
    decode: Decode = decode,
) -> list[Row]:
    """`answers` sampled answers of every prompt; one row of the samples file each.

    All of a prompt's rows go to `keep` together. `batch_size` counts answers, as it does in greedy
    decoding. Surprisals are the model's own, whatever the temperature at which the tokens were
    drawn. `decode` is that of the engine which loaded `model`.
    """
    ends, stops = end_tokens(model, tokenizer), StopStrings(tokenizer, asking.stop)

    def work(batch: list[Prompt], size: int) -> list[Row]:
        examples = [prompt["example_id"] for prompt in batch]
        keys = [f"{seed}\x1f{example}\x1f{k}" for example in examples for k in range(answers)]
        drawn = decode(
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
            _row(example, k, drawn[index * answers + k], stops)
            for index, example in enumerate(examples)
            for k in range(answers)
        ]

    return in_waves(prompts, max(1, batch_size // answers), "prompts", work, keep)


def _row(example: str, sample: int, answer: Answer, stops: StopStrings) -> Row:
    return {
        "example_id": example,
        "sample": sample,
        "token_ids": answer.token_ids,
        "surprisal": answer.surprisal,
        "text": stops.decode(answer.token_ids),
    }
