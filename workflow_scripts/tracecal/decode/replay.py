"""Exact traces of answers that were made elsewhere: one teacher-forced pass, nothing generated."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import torch
from polars import CompatLevel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.decode.answers import token_texts
from tracecal.decode.batching import NotFiniteError, in_batches
from tracecal.decode.capture import capture
from tracecal.decode.context import shared_prefix, started
from tracecal.decode.model import end_tokens
from tracecal.decode.traces import write_table
from tracecal.errors import InputError
from tracecal.logs.record import RECORDS

# Logits held at a time, 1 GiB in float32.
LOGITS = 1 << 28
Row = dict[str, Any]


def replay_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    answers: pl.DataFrame,
    batch_size: int,
    end_token: bool = False,
) -> pl.DataFrame:
    """`answers` (columns of `RECORDS`) with the surprisals and entropies that `model` gives them.

    Token ids are taken as they are. Where there is only text it is tokenised, the answer apart
    from its prompt, and with `end_token` the model's end token is put after it. Raises
    `InputError` where an answer has no prompt, no token, or one that the model does not know.
    """
    ends = end_tokens(model, tokenizer)
    own = tokenizer.eos_token_id if tokenizer.eos_token_id in ends else ends[0]
    rows = [
        _tokenised(row, tokenizer, own if end_token else None)
        for row in answers.iter_rows(named=True)
    ]
    vocabulary = model.get_output_embeddings().weight.shape[0]
    for row in rows:
        if max(row["prompt_token_ids"] + row["token_ids"]) >= vocabulary:
            raise InputError(
                f"answer {row['example_id']!r} holds token ids that the model does not have: it "
                "was made with another tokenizer. Replay it with the model that gave it."
            )
    longest = max(len(row["token_ids"]) for row in rows)
    fitting = max(1, min(batch_size, LOGITS // (longest * vocabulary)))
    # As prompts: what is read is the prompt and all of the answer but its last token.
    prompts = [
        {
            "example_id": row["example_id"],
            "prompt_token_ids": row["prompt_token_ids"] + row["token_ids"][:-1],
            "row": row,
        }
        for row in rows
    ]
    done = in_batches(
        prompts, fitting, "answers", lambda batch: _replayed(model, [one["row"] for one in batch])
    )
    for row in done:
        row["tokens"] = token_texts(tokenizer, row["token_ids"])
    return pl.DataFrame(done, schema=RECORDS).sort("example_id")


def _tokenised(row: Row, tokenizer: PreTrainedTokenizerBase, end: int | None) -> Row:
    prompt, answer = row["prompt_token_ids"], row["token_ids"]
    if prompt is None:
        if row["prompt"] is None:
            raise InputError(
                f"answer {row['example_id']!r} cannot be replayed: its row holds neither a prompt "
                "nor prompt_token_ids. Add one of them."
            )
        prompt = prompt_ids(tokenizer, row["prompt"])
    told = {}
    if answer is None:
        answer = tokenizer(row["answer"] or "", add_special_tokens=False)["input_ids"]
        answer = answer if end is None else [*answer, end]
        told["stop_token"] = "absent" if end is None else "included"
    if not answer:
        raise InputError(f"answer {row['example_id']!r} cannot be replayed: it has no tokens.")
    return row | told | {"prompt_token_ids": list(prompt), "token_ids": list(answer)}


def prompt_ids(tokenizer: PreTrainedTokenizerBase, prompt: str) -> list[int]:
    """A prompt's ids, beginning as the tokenizer begins a text; never with that mark twice."""
    begins = tokenizer.bos_token is not None and prompt.startswith(tokenizer.bos_token)
    return tokenizer(prompt, add_special_tokens=not begins)["input_ids"]


@torch.inference_mode()
def _replayed(model: PreTrainedModel, rows: Sequence[Row]) -> list[Row]:
    """The rows with their traces; what all prompts begin with is read once."""
    read = [row["prompt_token_ids"] + row["token_ids"][:-1] for row in rows]
    shared = shared_prefix(model, [row["prompt_token_ids"] for row in rows])
    context, ids = started(model, read, shared)
    logits = context.read_last(ids, max(len(row["token_ids"]) for row in rows))
    done = []
    for place, row in enumerate(rows):
        tokens = torch.tensor(row["token_ids"], device=model.device)
        _, surprisal, entropy = capture(logits[place, -len(tokens) :], tokens)
        if not bool((surprisal.isfinite() & entropy.isfinite()).all()):
            raise NotFiniteError(place, "in a replayed answer")
        exact = {"surprisal": surprisal.tolist(), "entropy": entropy.tolist()}
        unsaid = {"entropy_lower": None, "entropy_upper": None, "lacks": None, "processed": "no"}
        done.append(row | exact | unsaid)
    return done


def tokenisation(answers: pl.DataFrame, end_token: bool) -> str:
    """How the tokens of replayed answers came about, in words."""
    given = answers["token_ids"].is_not_null().sum()
    if given == answers.height:
        return "token ids as given"
    end = "with" if end_token else "without"
    return (
        f"token ids as given for {given} of {answers.height} answers; the others' text tokenised "
        f"apart from its prompt, {end} an end token"
    )


def write_replayed(answers: pl.DataFrame, metadata: dict[str, str], path: str) -> None:
    """Write replayed answers as a sealed Arrow IPC file that says how they were made."""
    write_table(answers.to_arrow(compat_level=CompatLevel.oldest()), metadata, path)
