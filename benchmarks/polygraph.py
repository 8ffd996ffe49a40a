"""Texts in, answers and three scores of each out: ours, and lm-polygraph's manager with its defaults.

`make bench` installs lm-polygraph in an environment of its own; without it this area has no rows.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from benchmarks.decoding import model_of, tokens
from benchmarks.timing import Row, paired
from trace_workflow.models.decoding import decode
from tracecal.capture.packed_linear import pack
from tracecal.capture.stop_strings import StopStrings

PROMPT = 24
# (vocabulary, width, layers, answers, at once, new tokens): a real vocabulary at two lengths, as its
# memory grows with them, and the size of the embedded models
SIZES = (
    (151_936, 256, 4, 32, 32, 16),
    (151_936, 256, 4, 32, 32, 32),
    (1_500, 96, 2, 64, 8, 16),
)


@dataclass(frozen=True)
class Asked:
    """What both sides answer: `new` tokens to each text, `at_once` of them together."""

    tokenizer: PreTrainedTokenizerFast
    texts: list[str]
    at_once: int
    new: int


def rows() -> Iterator[Row]:
    if not find_spec("lm_polygraph"):
        print("lm-polygraph is not installed: its rows are left out.")
        return
    torch.set_num_threads(1)
    for vocabulary, width, layers, count, at_once, new in SIZES:
        tokenizer, model = _tokenizer(vocabulary), model_of(vocabulary, width, layers)
        texts = [tokenizer.decode(tokens(PROMPT, vocabulary, row)) for row in range(count)]
        asked = Asked(tokenizer, texts, at_once, new)
        ours = partial(_ours, pack(copy.deepcopy(model)), asked)
        model.set_attn_implementation("eager")  # others give no attentions
        theirs = partial(_theirs, model, asked)
        np.testing.assert_allclose(ours(), theirs(), rtol=0, atol=1e-3)
        yield paired(
            f"{count} x {new} tokens of {vocabulary:,}, {at_once} at once, scored",
            ours,
            theirs,
            "lm-polygraph",
            items=count,
            unit="answers",
            repeats=3,
        )


def _tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """One whose words are its tokens."""
    words = {f"t{number}": number for number in range(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="t0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="t0", padding_side="left", eos_token="t1"
    )


def _ours(model: PreTrainedModel, asked: Asked) -> np.ndarray:
    prompts = asked.tokenizer(asked.texts)["input_ids"]
    none = StopStrings(None, ())
    answers = decode(model, prompts, [], none, asked.new, slots=asked.at_once)
    asked.tokenizer.batch_decode([answer.token_ids for answer in answers])
    scores = [
        (sum(answer.surprisal), np.mean(answer.surprisal), np.mean(answer.entropy))
        for answer in answers
    ]
    return np.array(scores).T


def _theirs(model: PreTrainedModel, asked: Asked) -> np.ndarray:
    """The same scores; it keeps attentions and hidden states too."""
    from lm_polygraph.defaults.register_default_stat_calculators import (
        register_default_stat_calculators,
    )
    from lm_polygraph.estimators import MaximumSequenceProbability, MeanTokenEntropy, Perplexity
    from lm_polygraph.utils.builder_enviroment_stat_calculator import (
        BuilderEnvironmentStatCalculator,
    )
    from lm_polygraph.utils.dataset import Dataset
    from lm_polygraph.utils.manager import UEManager
    from lm_polygraph.utils.model import WhiteboxModel

    whitebox = WhiteboxModel(model, asked.tokenizer, "benchmark", "CausalLM")
    estimators = [MaximumSequenceProbability(), Perplexity(), MeanTokenEntropy()]
    manager = UEManager(
        Dataset(asked.texts, [""] * len(asked.texts), asked.at_once),
        whitebox,
        estimators,
        BuilderEnvironmentStatCalculator(whitebox),
        register_default_stat_calculators("Whitebox"),
        generation_metrics=[],
        ue_metrics=[],
        processors=[],
        ignore_exceptions=False,
        verbose=False,
        max_new_tokens=asked.new,
    )
    manager()
    return np.array([manager.estimations[one.level, str(one)] for one in estimators])
