"""Fixtures: tiny encoders of every kind, saved as folders and loaded as the workflow loads them."""

import pytest
import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from support.texts import ANSWERS
from trace_workflow.models.text_encoders import load_encoder

WINDOW = 48


@pytest.fixture(scope="session")
def wordpieces() -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer as BERT's: [CLS] and [SEP], punctuation and Han characters apart."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    backend.train_from_iterator(ANSWERS * 3, trainer)
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=WINDOW,
    )


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """A language model's byte-level BPE, its few tokens often less than a character."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<pad>", "<end>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(ANSWERS * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", eos_token="<end>")


@pytest.fixture(scope="session")
def make_encoder(wordpieces, tmp_path_factory):
    """Make an encoder of a kind, with random weights, and load it from its folder."""

    def make(kind, labels=None):
        torch.manual_seed(0)
        size = {
            "vocab_size": len(wordpieces),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "initializer_range": 0.3,
            "pad_token_id": 0,
        }
        bert = BertConfig(**size, max_position_embeddings=WINDOW)
        if kind == "embedding":
            model = BertModel(bert)
        elif kind == "cross":
            # As RoBERTa does: two positions more than can be used.
            size |= {"pad_token_id": 1, "num_labels": 1, "type_vocab_size": 2}
            model = RobertaForSequenceClassification(
                RobertaConfig(**size, max_position_embeddings=WINDOW + 2)
            )
        elif kind == "nli":
            bert.num_labels = 3
            bert.id2label = dict(enumerate(labels or ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"]))
            model = BertForSequenceClassification(bert)
        else:
            bert.num_labels = 3
            model = BertForTokenClassification(bert)
        folder = tmp_path_factory.mktemp(kind)
        model.save_pretrained(folder)
        wordpieces.save_pretrained(folder)
        return load_encoder(folder, "token" if kind == "importance" else None)

    return make
