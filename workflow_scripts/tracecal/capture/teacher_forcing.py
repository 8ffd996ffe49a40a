"""Exact traces of answers made elsewhere: one teacher-forced pass, nothing generated."""

from collections.abc import Sequence

import polars as pl
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.answers.imported_traces import trace_rows
from tracecal.answers.record import RECORDS
from tracecal.answers.task_answers import NOT_REPLAYABLE
from tracecal.capture.batches import Keep, NotFiniteError, Prompt, forget, in_batches
from tracecal.capture.capture import capture
from tracecal.capture.context import padded_context, shared_prefix
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.tokens import end_tokens, token_texts
from tracecal.errors import InputError

# Logits in memory at a time: 1 GiB in float32.
MOST_LOGITS = 1 << 28
# Empty, since all entropies are exact.
NULL_COLUMNS = ("entropy_lower", "entropy_upper", "top_k", "lacks", "partial")


def replay_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    answers: pl.DataFrame,
    batch_size: int,
    end_token: bool = False,
) -> pl.DataFrame:
    """Compute the surprisals and entropies that `model` gives to answers (columns of `RECORDS`).

    See `tokenised` and `replay_task`.
    """
    rows = replay_task(model, tokenised(tokenizer, answers, end_token), tokenizer, batch_size)
    return pl.DataFrame(rows, schema=RECORDS).sort("example_id")


def tokenised(
    tokenizer: PreTrainedTokenizerBase, answers: pl.DataFrame, end_token: bool
) -> list[Prompt]:
    """Answers (columns of `RECORDS`) to replay, with the token ids of prompt and answer.

    Token ids are used as they are, and decoded where there is no text. Where there is only text,
    prompt and answer are tokenised separately; `ended` says whether to append the end token of the
    model. Raises `InputError` where an answer has no prompt or no token.
    """
    if (unusable := answers.select("example_id", why=NOT_REPLAYABLE).drop_nulls()).height:
        name, why = unusable.row(0)
        raise InputError(f"answer {name!r} cannot be replayed: {why}.")
    return [_tokenised(row, tokenizer, end_token) for row in answers.iter_rows(named=True)]


def _tokenised(row: Prompt, tokenizer: PreTrainedTokenizerBase, end_token: bool) -> Prompt:
    row = row | {"ended": False, "processed": "no"} | dict.fromkeys(NULL_COLUMNS)
    if row["prompt_token_ids"] is None:
        row["prompt_token_ids"] = prompt_ids(tokenizer, row["prompt"])
    if row["token_ids"] is None:
        row["token_ids"] = tokenizer(row["answer"], add_special_tokens=False)["input_ids"]
        row |= {"ended": end_token, "stop_token": "included" if end_token else "absent"}
    if row["answer"] is None:
        row["answer"] = StopStrings(tokenizer, ()).decode(row["token_ids"])
    return row


def prompt_ids(tokenizer: PreTrainedTokenizerBase, prompt: str) -> list[int]:
    """A prompt's ids with the tokenizer's special tokens, unless it begins with the BOS token."""
    begins = tokenizer.bos_token is not None and prompt.startswith(tokenizer.bos_token)
    return tokenizer(prompt, add_special_tokens=not begins)["input_ids"]


def replay_task(
    model: PreTrainedModel,
    prompts: Sequence[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    batch_size: int,
    keep: Keep = forget,
) -> list[Prompt]:
    """The answers of `tokenised` with their traces (columns of `RECORDS`); see `in_batches`.

    Raises `InputError` where one holds a token that the model does not know.
    """
    ends = end_tokens(model, tokenizer)
    end = [tokenizer.eos_token_id if tokenizer.eos_token_id in ends else ends[0]]
    vocabulary = model.get_output_embeddings().weight.shape[0]
    to_read = []
    for row in prompts:
        answer = row["token_ids"] + end * row["ended"]
        if max(row["prompt_token_ids"] + answer) >= vocabulary:
            raise InputError(
                f"answer {row['example_id']!r} holds token ids that the model does not have: it "
                "was made with another tokenizer. Replay it with the model that made it."
            )
        # The model reads the prompt and all of the answer but its last token.
        ids = row["prompt_token_ids"] + answer[:-1]
        entry = {"example_id": row["example_id"], "prompt_token_ids": ids, "answer": answer}
        to_read.append(entry | {"row": row})
    longest = max(len(entry["answer"]) for entry in to_read)
    fitting = max(1, min(batch_size, MOST_LOGITS // (longest * vocabulary)))

    def work(batch: list[Prompt]) -> list[Prompt]:
        traces = _replayed(model, batch)
        return [
            {name: entry["row"][name] for name in RECORDS}
            | {"token_ids": entry["answer"], "tokens": token_texts(tokenizer, entry["answer"])}
            | trace
            for entry, trace in zip(batch, traces, strict=True)
        ]

    return in_batches(to_read, fitting, "answers", work, keep)


def replay_traces(
    model: PreTrainedModel,
    prompts: Sequence[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    batch_size: int,
    keep: Keep,
) -> None:
    """Replay the answers of `tokenised`; finished rows of the traces file go to `keep`."""

    def keep_traces(rows: list[Prompt]) -> None:
        keep(trace_rows(pl.DataFrame(rows, schema=RECORDS)))

    replay_task(model, prompts, tokenizer, batch_size, keep_traces)


@torch.inference_mode()
def _replayed(model: PreTrainedModel, batch: Sequence[Prompt]) -> list[dict[str, list[float]]]:
    """The surprisals and entropies of each answer; a shared prefix is read once."""
    shared = shared_prefix(model, [entry["row"]["prompt_token_ids"] for entry in batch])
    context, ids = padded_context(model, [entry["prompt_token_ids"] for entry in batch], shared)
    logits = context.read_last(ids, max(len(entry["answer"]) for entry in batch))
    traces = []
    for row, entry in enumerate(batch):
        tokens = torch.tensor(entry["answer"], device=model.device)
        _, surprisal, entropy = capture(logits[row, -len(tokens) :], tokens)
        if not bool((surprisal.isfinite() & entropy.isfinite()).all()):
            raise NotFiniteError(row, "in a replayed answer")
        traces.append({"surprisal": surprisal.tolist(), "entropy": entropy.tolist()})
    return traces


def tokenisation(answers: pl.DataFrame, end_token: bool) -> str:
    """A sentence of the metadata on where the tokens of replayed answers come from."""
    count = answers["token_ids"].count()
    if count == answers.height:
        return "token ids as given"
    end = "with" if end_token else "without"
    return (
        f"token ids as given for {count} of {answers.height} answers; the others' text tokenised "
        f"apart from its prompt, {end} an end token"
    )
