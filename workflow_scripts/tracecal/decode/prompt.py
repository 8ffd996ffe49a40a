"""From examples to the token ids a model is asked with."""

from collections.abc import Iterable, Mapping
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import TemplateError
from transformers import AutoConfig, PreTrainedTokenizerBase

from tracecal.decode.model import loaded
from tracecal.decode.timed import at_most
from tracecal.errors import InputError
from tracecal.storage.files import read_parquet
from tracecal.tasks.asking import Asking
from tracecal.tasks.roles import evaluated

PATIENCE = 20  # seconds that a chat template may take for one conversation
PLAIN = "set the model's 'chat: false' to ask in plain text"


def messages(asking: Asking, example: Mapping[str, Any]) -> list[dict[str, str]]:
    """The conversation that asks one example: system text, worked examples, the question."""
    turns = [{"role": "system", "content": asking.system}] if asking.system else []
    for shot in asking.few_shot:
        turns.append({"role": "user", "content": _fill(asking.prompt, shot.question, shot.context)})
        turns.append({"role": "assistant", "content": shot.answer})
    question = _fill(asking.prompt, example["question"], example["context"])
    return [*turns, {"role": "user", "content": question}]


def _fill(template: str, question: str, context: str | None) -> str:
    return template.format(question=question, context=context or "")


def render(tokenizer: PreTrainedTokenizerBase, turns: list[dict[str, str]], chat: bool) -> str:
    """The text that is tokenised: through the model's chat template, or plain for a base model.

    A template that knows no system role, and refuses or drops it, is given the system text before
    the first question. Thinking is off where a template can switch it. Raises `InputError` where
    the template refuses the conversation all the same, does not end, or leaves a message out.
    """
    if not chat:
        return _plain(turns)
    try:
        with at_most(PATIENCE):
            text = _templated(tokenizer, turns)
    except Exception as error:  # a template is a program, and may raise whatever it likes
        if isinstance(error, TemplateError) and turns[0]["role"] == "system":
            return render(tokenizer, _system_before_question(turns), chat)
        raise InputError(
            f"the chat template of {tokenizer.name_or_path} refuses the task's messages: {error}; "
            f"{PLAIN}."
        ) from error
    lost = _first_lost(turns, text)
    if lost and lost["role"] == "system":
        return render(tokenizer, _system_before_question(turns), chat)
    if lost:
        what = "the question" if lost["role"] == "user" else "a worked answer"
        raise InputError(
            f"the chat template of {tokenizer.name_or_path} drops {what}: of "
            f"{lost['content'][:60]!r} it makes {text[-60:]!r}; {PLAIN}."
        )
    return text


def _first_lost(turns: list[dict[str, str]], text: str) -> dict[str, str] | None:
    """The first message that a rendered text lacks, or has before those that it should follow.

    The system text may stand anywhere: some templates move it to the last question.
    """
    start = 0
    for turn in turns:
        content, system = turn["content"].strip(), turn["role"] == "system"
        place = text.find(content, 0 if system else start)
        if place < 0:
            return turn
        start = start if system else place + len(content)
    return None


def _templated(tokenizer: PreTrainedTokenizerBase, turns: list[dict[str, str]]) -> str:
    return tokenizer.apply_chat_template(
        turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )


def _system_before_question(turns: list[dict[str, str]]) -> list[dict[str, str]]:
    system, first, *others = turns
    return [{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *others]


def _plain(turns: list[dict[str, str]]) -> str:
    """A worked answer follows its question on the next line; blank lines divide examples."""
    blocks: list[str] = []
    for turn in turns:
        if turn["role"] == "assistant":
            blocks[-1] += f"\n{turn['content']}"
        else:
            blocks.append(turn["content"])
    return "\n\n".join(blocks) + "\n"


def ask(
    tokenizer: PreTrainedTokenizerBase, task: pl.DataFrame, asking: Asking, chat: bool | None = None
) -> list[dict[str, Any]]:
    """The prompt of every example of `task`, as `put` makes them."""
    rows = task.iter_rows(named=True)
    conversations = ((row["example_id"], messages(asking, row)) for row in rows)
    return put(tokenizer, conversations, asking.max_new_tokens, chat)


def ask_evaluated(
    tokenizer: PreTrainedTokenizerBase, task: str | Path, asking: Asking, chat: bool | None = None
) -> list[dict[str, Any]]:
    """The prompts of a task file's evaluated examples."""
    return ask(tokenizer, evaluated(read_parquet(task, ["question"]), task), asking, chat)


def put(
    tokenizer: PreTrainedTokenizerBase,
    conversations: Iterable[tuple[str, list[dict[str, str]]]],
    most: int,
    chat: bool | None = None,
    start: str = "",
) -> list[dict[str, Any]]:
    """`example_id`, `prompt` and `prompt_token_ids` of every conversation.

    `chat` says whether to ask through the chat template; null: where the tokenizer has one. The
    template writes its special tokens itself, so only plain prompts get the tokenizer's. The
    model's reply begins with `start` and goes on for at most `most` tokens. Raises `InputError`
    where a template is wanted and missing, or prompt and reply are more than the model can read.
    """
    chat = tokenizer.chat_template is not None if chat is None else chat
    if chat and tokenizer.chat_template is None:
        raise InputError(f"{tokenizer.name_or_path} has no chat template; {PLAIN}.")
    prompts = []
    for example, turns in conversations:
        text = render(tokenizer, turns, chat) + start
        ids = tokenizer(text, add_special_tokens=not chat)["input_ids"]
        _require_readable(ids, most, tokenizer, example)
        prompts.append({"example_id": example, "prompt": text, "prompt_token_ids": list(ids)})
    return prompts


def _require_readable(
    ids: list[int], most: int, tokenizer: PreTrainedTokenizerBase, example: str
) -> None:
    """Raise `InputError` where a model has too small a context or vocabulary for a prompt."""
    context, vocabulary = _limits(tokenizer.name_or_path)
    if len(ids) + most > context:
        raise InputError(
            f"the prompt of example {example!r} has {len(ids)} tokens, its answer up to {most}, "
            f"and {tokenizer.name_or_path} reads {context:g}; leave long rows out with the task's "
            "'max_characters', ask for shorter answers, or take a model that reads more."
        )
    if max(ids, default=0) >= vocabulary:
        raise InputError(
            f"the tokenizer of {tokenizer.name_or_path} gives token {max(ids)} and its model has "
            f"{vocabulary:g}: they are not of one model; give a folder whose files belong together."
        )


@cache
def _limits(folder: str) -> tuple[float, float]:
    """How many tokens the model in a folder reads, and knows; infinity where it does not say."""
    if not (Path(folder) / "config.json").is_file():
        return inf, inf
    config = loaded(AutoConfig, folder).get_text_config()
    return (
        getattr(config, "max_position_embeddings", None) or inf,
        getattr(config, "vocab_size", None) or inf,
    )
