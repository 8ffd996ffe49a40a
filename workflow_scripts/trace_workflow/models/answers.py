"""The greedy answers to a task's prompts, as rows of the traces file."""

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.decoding import Decode, decode
from tracecal.capture.batches import Keep, Prompt, forget, in_waves
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.tokens import end_tokens, token_texts
from tracecal.io.journal import Row


def answer_task(
    model: PreTrainedModel,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    asking: PromptSettings,
    batch_size: int,
    keep: Keep = forget,
    decode: Decode = decode,
) -> list[Row]:
    """Decode every prompt greedily into a row of the traces file; finished rows go to `keep`.

    `decode` belongs to the engine that loaded `model`.
    """
    ends, stops = end_tokens(model, tokenizer), StopStrings(tokenizer, asking.stop)

    def work(batch: list[Prompt], size: int) -> list[Row]:
        ids = [prompt["prompt_token_ids"] for prompt in batch]
        answers = decode(model, ids, ends, stops, asking.max_new_tokens, slots=size)
        return [
            {
                **prompt,
                **vars(answer),
                "answer": stops.decode(answer.token_ids),
                "tokens": token_texts(tokenizer, answer.token_ids),
            }
            for prompt, answer in zip(batch, answers, strict=True)
        ]

    return in_waves(prompts, batch_size, "answers", work, keep)
