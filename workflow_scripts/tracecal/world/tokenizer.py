"""The tokenizer of the embedded models: byte-level BPE trained on the corpus."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tracecal.storage.files import atomic_folder

PAD, END_OF_TEXT, END_OF_TURN = "<|pad|>", "<|endoftext|>", "<|end|>"
USER, ASSISTANT = "<|user|>", "<|assistant|>"
MAXIMUM_LENGTH = 1024

# <|user|>question<|end|><|assistant|>answer<|end|>
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{%- if message.role not in ("user", "assistant") -%}
{{ raise_exception("Only the roles user and assistant are known, not " + message.role) }}
{%- endif -%}
{{ "<|" + message.role + "|>" + message.content + "<|end|>" }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ "<|assistant|>" }}{%- endif -%}
"""


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE of `vocabulary` tokens in which every digit is a token of its own.

    There is no BOS token: a prompt starts with the <|user|> that the chat template writes, and
    encoding the rendered prompt adds nothing to it.
    """
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, END_OF_TEXT, END_OF_TURN, USER, ASSISTANT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        eos_token=END_OF_TURN,
        additional_special_tokens=[END_OF_TEXT, USER, ASSISTANT],
        model_max_length=MAXIMUM_LENGTH,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def save_tokenizer(corpus: pl.DataFrame, vocabulary: int, folder: str | Path) -> None:
    """Train on the prompts and answers of `corpus`; write the tokenizer's folder."""
    tokenizer = train_tokenizer([*corpus["prompt"], *corpus["answer"]], vocabulary)
    with atomic_folder(folder) as part:
        tokenizer.save_pretrained(part)


def rendered_prompt(tokenizer: PreTrainedTokenizerFast, message: str) -> str:
    """The text that `message` becomes as a user's turn, up to where the answer starts."""
    turns = [{"role": "user", "content": message}]
    return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)


def require_same_tokenizer(
    tokenizer: PreTrainedTokenizerFast, folder: Path, messages: Iterable[str]
) -> None:
    """Raise `RuntimeError` where AutoTokenizer loads another tokenizer than the folder's.

    It does so silently for some architectures; token ids then differ without any error.
    """
    loaded = AutoTokenizer.from_pretrained(folder)
    for message in messages:
        prompt = rendered_prompt(tokenizer, message)
        if loaded(prompt)["input_ids"] != tokenizer(prompt)["input_ids"]:
            raise RuntimeError(f"the tokenizer saved in {folder} loads as another one: {prompt!r}")
