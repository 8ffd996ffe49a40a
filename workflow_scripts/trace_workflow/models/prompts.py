"""From examples to prompts and their token ids."""

import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, tzinfo
from functools import cache
from math import inf
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
from jinja2 import TemplateError
from transformers import AutoConfig, PreTrainedTokenizerBase
from transformers.utils import chat_template_utils

from trace_workflow.config.prompting import NO_TEMPLATE, PromptSettings
from tracecal.capture.model import loaded
from tracecal.errors import InputError
from tracecal.io.evaluated import evaluation_ids
from tracecal.io.log import LOGGER

# Seconds that a chat template may take: by the processor's clock, and at all.
PATIENCE, LAST_RESORT = 10.0, 120.0
TODAY = datetime(2024, 7, 26)  # what templates with a clock are told, whenever they are asked


class _Today(datetime):
    """The clock of chat templates, which is read where they are rendered."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return TODAY


PLAIN = "plain text, without a chat template"  # what traces say of their prompts
USE_PLAIN_TEXT = "set the model's 'chat: false' to ask in plain text"


def messages(asking: PromptSettings, example: Mapping[str, Any]) -> list[dict[str, str]]:
    """The conversation of one example: system text, worked examples, the question."""
    turns = [{"role": "system", "content": asking.system}] if asking.system else []
    for shot in asking.few_shot:
        turns.append({"role": "user", "content": _fill(asking.prompt, shot.question, shot.context)})
        turns.append({"role": "assistant", "content": shot.answer})
    question = _fill(asking.prompt, example["question"], example["context"])
    return [*turns, {"role": "user", "content": question}]


def _fill(template: str, question: str, context: str | None) -> str:
    return template.format(question=question, context=context or "")


def render(tokenizer: PreTrainedTokenizerBase, turns: list[dict[str, str]], chat: bool) -> str:
    """The text of a conversation: by the model's chat template, or plain for a base model.

    Where a template refuses or drops the system role, the system text goes before the first
    question. Thinking is off where a template can switch it, and today is always `TODAY`. Raises
    `InputError` where the template still refuses the conversation, or leaves a message out.
    """
    if not chat:
        return _plain(turns)
    try:
        with mock.patch.object(chat_template_utils, "datetime", _Today), _limited_time():
            text = tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
    except Exception as error:  # a template is a program and may raise anything
        if isinstance(error, TemplateError) and turns[0]["role"] == "system":
            return render(tokenizer, _system_before_question(turns), chat)
        raise InputError(
            f"the chat template of {tokenizer.name_or_path} refuses the task's messages: {error}; "
            f"{USE_PLAIN_TEXT}."
        ) from error
    lost = _first_lost(turns, text)
    if lost and lost["role"] == "system":
        return render(tokenizer, _system_before_question(turns), chat)
    if lost:
        what = "the question" if lost["role"] == "user" else "a worked answer"
        raise InputError(
            f"the chat template of {tokenizer.name_or_path} drops {what}: it turns "
            f"{lost['content'][:60]!r} into {text[-60:]!r}; {USE_PLAIN_TEXT}."
        )
    return text


@contextmanager
def _limited_time() -> Iterator[None]:
    """Raise `TimeoutError` after PATIENCE seconds of work; end the process after LAST_RESORT.

    The latter is for a single operation without end, such as a power, in which Python sees no
    signal. Only the main thread can be interrupted.
    """

    def interrupt(*_: Any) -> None:
        raise TimeoutError(f"it takes over {PATIENCE:g} s")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    timers = [
        (signal.SIGVTALRM, interrupt, signal.ITIMER_VIRTUAL, PATIENCE),
        (signal.SIGALRM, signal.SIG_DFL, signal.ITIMER_REAL, LAST_RESORT),
    ]
    before = [
        (number, signal.signal(number, handler), timer, signal.setitimer(timer, seconds))
        for number, handler, timer, seconds in timers
    ]
    try:
        yield
    finally:
        for number, handler, timer, remaining in before:
            signal.setitimer(timer, *remaining)
            signal.signal(number, handler)


def _first_lost(turns: list[dict[str, str]], text: str) -> dict[str, str] | None:
    """The first message that is missing from a rendered text or out of order.

    The system text may stand anywhere: some templates move it to the last question.
    """
    start = 0
    for turn in turns:
        content, system = turn["content"].strip(), turn["role"] == "system"
        position = text.find(content, 0 if system else start)
        if position < 0:
            return turn
        start = start if system else position + len(content)
    return None


def _system_before_question(turns: list[dict[str, str]]) -> list[dict[str, str]]:
    system, first, *rest = turns
    return [{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *rest]


def _plain(turns: list[dict[str, str]]) -> str:
    """Each worked answer on the line after its question; blank lines between examples."""
    blocks: list[str] = []
    for turn in turns:
        if turn["role"] == "assistant":
            blocks[-1] += f"\n{turn['content']}"
        else:
            blocks.append(turn["content"])
    return "\n\n".join(blocks) + "\n"


def ask(
    tokenizer: PreTrainedTokenizerBase,
    task: pl.DataFrame,
    asking: PromptSettings,
    chat: bool | None = None,
) -> list[dict[str, Any]]:
    """The prompt of every example of `task`; see `tokenised_prompts`."""
    rows = task.iter_rows(named=True)
    conversations = ((row["example_id"], messages(asking, row)) for row in rows)
    return tokenised_prompts(tokenizer, conversations, asking.max_new_tokens, chat)


def ask_evaluated(
    tokenizer: PreTrainedTokenizerBase,
    task: str | Path,
    asking: PromptSettings,
    chat: bool | None = None,
) -> list[dict[str, Any]]:
    """The prompts of a task file's evaluated examples."""
    return ask(tokenizer, evaluation_ids(task, ["question", "context"]), asking, chat)


def tokenised_prompts(
    tokenizer: PreTrainedTokenizerBase,
    conversations: Iterable[tuple[str, list[dict[str, str]]]],
    max_new_tokens: int,
    chat: bool | None = None,
    start: str = "",
) -> list[dict[str, Any]]:
    """`example_id`, `prompt` and `prompt_token_ids` of every conversation.

    `chat` says whether to use the chat template; None: where the tokenizer has one. The template
    writes its special tokens itself, so only plain prompts get the tokenizer's. The model's reply
    begins with `start` and has at most `max_new_tokens` further tokens. Raises `InputError` where
    the template is missing, or prompt and reply exceed the model's context.
    """
    if lacks_template(tokenizer, chat):
        LOGGER.warning("%s", NO_TEMPLATE.format(tokenizer.name_or_path))
    chat = tokenizer.chat_template is not None if chat is None else chat
    if chat and tokenizer.chat_template is None:
        raise InputError(f"{tokenizer.name_or_path} has no chat template; {USE_PLAIN_TEXT}.")
    prompts = []
    for example, turns in conversations:
        text = render(tokenizer, turns, chat) + start
        ids = tokenizer(text, add_special_tokens=not chat)["input_ids"]
        _require_fit(ids, max_new_tokens, tokenizer, example)
        prompts.append({"example_id": example, "prompt": text, "prompt_token_ids": list(ids)})
    return prompts


def lacks_template(tokenizer: PreTrainedTokenizerBase, chat: bool | None) -> bool:
    """Whether a model is asked in plain text as there is nothing else, and not as `chat` says."""
    return chat is None and tokenizer.chat_template is None


def _require_fit(
    ids: list[int], max_new_tokens: int, tokenizer: PreTrainedTokenizerBase, example: str
) -> None:
    """Raise `InputError` where a model's context or vocabulary is too small for a prompt."""
    context, vocabulary = _limits(tokenizer.name_or_path)
    if len(ids) + max_new_tokens > context:
        raise InputError(
            f"the prompt of example {example!r} has {len(ids)} tokens, its answer up to "
            f"{max_new_tokens}, and {tokenizer.name_or_path} reads {context:g}; leave long rows "
            "out with the task's 'max_characters', ask for shorter answers, or use a model with a "
            "larger context."
        )
    if max(ids, default=0) >= vocabulary:
        raise InputError(
            f"the tokenizer of {tokenizer.name_or_path} gives token {max(ids)} and its model has "
            f"only {vocabulary:g}: they belong to different models; give a folder of one model."
        )


@cache
def _limits(folder: str) -> tuple[float, float]:
    """The context length and vocabulary size of the model in a folder; infinity where unstated."""
    if not (Path(folder) / "config.json").is_file():
        return inf, inf
    config = loaded(AutoConfig, folder).get_text_config()
    return (
        getattr(config, "max_position_embeddings", None) or inf,
        getattr(config, "vocab_size", None) or inf,
    )
