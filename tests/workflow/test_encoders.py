"""Encoders of one's own: a cross-encoder, a model of phrases and one of entailment, as folders."""

import polars as pl
import pytest
import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
)

pytestmark = pytest.mark.runs

SEMANTIC = ["token_sar", "mars", "semantic_entropy", "selfcheckgpt"]
PAIR = "demo-small/extractive"
RELATIONS = ["entailment", "neutral", "contradiction"]


def save(folder, tokenizer, model_class, labels):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.3,
        max_position_embeddings=128,
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
    )
    model_class(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"source": {"path": str(folder)}}


@pytest.fixture(scope="module")
def run(extended, tmp_path_factory):
    """The finished run with other encoders: its answers and its samples are there."""
    folders, results = tmp_path_factory.mktemp("encoders"), extended.root / "results/smoke"
    tokenizer = AutoTokenizer.from_pretrained(results / "encoders/entailment")
    tokenizer.padding_side, tokenizer.model_max_length = "right", 128
    sequence, token = BertForSequenceClassification, BertForTokenClassification
    encoders = {
        "similarity": save(folders / "similarity", tokenizer, sequence, ["similarity"]),
        "importance": save(
            folders / "importance", tokenizer, token, ["begins", "goes on", "weight"]
        ),
        "entailment": save(folders / "entailment", tokenizer, sequence, RELATIONS),
    }
    config = extended.variant("encoders", encoders=encoders, estimators=SEMANTIC)
    extended.snakemake(f"results/smoke/scores/{PAIR}.parquet", config=config)
    return results


def test_every_semantic_score_is_there_and_defined(run):
    scores = pl.read_parquet(run / f"scores/{PAIR}.parquet")
    named = scores.select(SEMANTIC)
    assert scores.height == 60
    answers = pl.read_ipc(run / f"traces/{PAIR}.arrow").select("example_id", "answer")
    unscored = scores.filter(pl.any_horizontal(pl.col(named.columns).is_null()))
    said = unscored.join(answers, on="example_id")["answer"].str.strip_chars()
    assert (said == "").all(), "undefined for an answer without text alone"
    assert named.select(pl.all().n_unique() > 10).row(0) == (True,) * 4
    assert named.select(pl.exclude("semantic_entropy")).max().max_horizontal().item() <= 1


def test_its_arithmetic_can_be_redone_from_what_is_kept(run):
    scores = pl.read_parquet(run / f"scores/{PAIR}.parquet")
    weights = pl.read_ipc(run / f"weights/token_sar/{PAIR}.arrow")
    traces = pl.read_ipc(run / f"traces/{PAIR}.arrow")
    kept = weights.join(traces, on="example_id").join(scores, on="example_id")
    for row in kept.drop_nulls("token_sar").head(20).iter_rows(named=True):
        risk = sum(w * s for w, s in zip(row["weight"], row["surprisal"], strict=True))
        assert row["token_sar"] == pytest.approx(2.718281828459045**-risk, rel=1e-5)
    compared = pl.read_ipc(run / f"comparisons/{PAIR}.arrow")
    assert compared.height == 60 * (3 * 2 + 3)
    sums = compared.select(pl.sum_horizontal(RELATIONS)).to_series()
    assert (sums - 1).abs().max() < 1e-5
