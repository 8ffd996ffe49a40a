"""Training the demo's tokenizer and its small models from scratch."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import polars as pl
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import (
    AutoTokenizer,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from tracecal.errors import InputError
from tracecal.io.checksums import require_sum
from tracecal.io.files import atomic_folder
from tracecal.io.log import progress_bar

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


# The training loop of all the demo's models.


WARM_UP = 0.05
# About 1 / sqrt(width). With the usual 0.02, models this narrow learn several times more slowly
INITIAL_SPREAD = 0.08
Batch = TypeVar("Batch")


def train(
    model: PreTrainedModel,
    batches: Sequence[Batch],
    loss: Callable[[Batch], torch.Tensor],
    learning_rate: float,
    name: str,
) -> None:
    """Train `model` in place, one step of AdamW on the `loss` of each batch.

    The same batches, weights and number of threads give the same weights on the same machine.
    """
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.05, fused=True
    )
    average = 0.0
    model.train()
    with progress_bar(len(batches), name, "step") as bar:
        for step, batch in enumerate(batches):
            value = loss(batch)
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * schedule((step + 1) / len(batches))
            optimizer.step()
            optimizer.zero_grad()
            average += (value.item() - average) / min(step + 1, 50)
            bar.set_postfix_str(f"loss {average:.3f}", refresh=False)
            bar.update()


def schedule(progress: float) -> float:
    """The learning rate's factor: linear warm-up over WARM_UP of the training, linear decay."""
    return min(progress / WARM_UP, (1 - progress) / (1 - WARM_UP) + 1e-3)


def length_batches(lengths: Sequence[int], tokens: int, rng: random.Random) -> list[list[int]]:
    """Every row once, in batches of similar length and at most `tokens` tokens with padding."""
    order = sorted(range(len(lengths)), key=lambda row: lengths[row] + rng.random())
    steps: list[list[int]] = [[]]
    for row in order:
        if steps[-1] and (len(steps[-1]) + 1) * lengths[row] > tokens:
            steps.append([])
        steps[-1].append(row)
    rng.shuffle(steps)
    return steps


def pad_right(rows: Sequence[Sequence[int]], filler: int) -> torch.Tensor:
    """The rows padded on the right with `filler`, int64 [rows, longest]."""
    tensors = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=filler)


def save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    folder: str | Path,
    messages: Sequence[str],
) -> None:
    """Write `folder` atomically, once its tokenizer is seen to encode `messages` alike."""
    with atomic_folder(folder) as part:
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        require_same_tokenizer(tokenizer, part, messages)


# Training a small Llama from scratch on the corpus of the demo data.


HEAD_WIDTH = 16


@dataclass(frozen=True)
class Settings:
    """Size and training of one model; `epochs` may be a fraction, `families` null means all."""

    layers: int
    width: int
    learning_rate: float
    epochs: float
    tokens_per_step: int
    seed: int
    families: Sequence[str] | None = None


@dataclass(frozen=True)
class Encoded:
    """One example: token ids, and where the answer starts among them."""

    ids: list[int]
    start: int


def train_model(
    corpus: pl.DataFrame,
    tokenizer_folder: str | Path,
    settings: Settings,
    folder: str | Path,
    name: str = "training",
) -> None:
    """Train on `corpus` and write `folder` as AutoModelForCausalLM loads it.

    The same corpus, settings and number of threads give the same weights on the same machine.
    """
    require_sum(tokenizer_folder)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    if settings.families:
        corpus = corpus.filter(pl.col("family").is_in(settings.families))
    examples = encode(corpus, tokenizer)
    torch.manual_seed(settings.seed)
    model = new_model(tokenizer, settings)
    plan = step_plan([len(example.ids) for example in examples], settings)

    def loss(rows: list[int]) -> torch.Tensor:
        return answer_loss(model, *collate([examples[r] for r in rows], tokenizer.pad_token_id))

    train(model, plan, loss, settings.learning_rate, name)
    save(model, tokenizer, folder, corpus["prompt"].head(200).to_list())


def encode(corpus: pl.DataFrame, tokenizer: PreTrainedTokenizerFast) -> list[Encoded]:
    """Prompt and answer encoded separately, as in generation, then joined with an end token."""
    rendered = [rendered_prompt(tokenizer, prompt) for prompt in corpus["prompt"]]
    prompts = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    answers = tokenizer(corpus["answer"].to_list(), add_special_tokens=False)["input_ids"]
    return [
        Encoded([*prompt, *answer, tokenizer.eos_token_id], len(prompt))
        for prompt, answer in zip(prompts, answers, strict=True)
    ]


def new_model(tokenizer: PreTrainedTokenizerFast, settings: Settings) -> LlamaForCausalLM:
    """A Llama with random weights; its generation config ends on the turn's or the text's end."""
    if settings.width % HEAD_WIDTH:
        raise InputError(
            f"A model's width is {settings.width}; it must be a multiple of {HEAD_WIDTH}."
        )
    ends = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids(END_OF_TEXT)]
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        intermediate_size=3 * settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.width // HEAD_WIDTH,
        max_position_embeddings=MAXIMUM_LENGTH,
        tie_word_embeddings=False,
        initializer_range=INITIAL_SPREAD,
        bos_token_id=None,
        eos_token_id=ends,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(
        eos_token_id=ends, pad_token_id=tokenizer.pad_token_id, do_sample=False
    )
    return model


def step_plan(lengths: Sequence[int], settings: Settings) -> list[list[int]]:
    """The rows of each step: of similar length, with at most `tokens_per_step` tokens in all."""
    rng = random.Random(settings.seed)
    plan: list[list[int]] = []
    remaining = settings.epochs
    while remaining > 0:
        epoch = length_batches(lengths, settings.tokens_per_step, rng)
        plan += epoch[: max(1, round(min(1.0, remaining) * len(epoch)))]
        remaining -= 1
    return plan


def collate(examples: list[Encoded], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids padded on the right, and which of them are answer: both [rows, longest]."""
    ids = pad_right([example.ids for example in examples], pad)
    answer = torch.zeros(ids.shape, dtype=torch.bool)
    for row, example in enumerate(examples):
        answer[row, example.start : len(example.ids)] = True
    return ids, answer


def answer_loss(model: LlamaForCausalLM, ids: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats) of the answers' tokens; logits are computed for these alone.

    Padding is on the right, where causal attention does not see it: no mask is needed.
    """
    hidden = model.model(ids[:, :-1], use_cache=False).last_hidden_state
    positions = answer[:, 1:]
    return functional.cross_entropy(model.lm_head(hidden[positions]), ids[:, 1:][positions])
