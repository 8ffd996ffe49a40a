"""The comparison of samples: all pairs, each once, in the classifier's own order of classes."""

import polars as pl
import pytest
import torch

from trace_workflow.models.nli import compare_samples, relation_columns
from tracecal.errors import InputError


def drawn(**texts):
    rows = [(example, k, text) for example, own in texts.items() for k, text in enumerate(own)]
    return pl.DataFrame(rows, schema=["example_id", "sample", "text"], orient="row")


def test_every_pair_is_compared_as_one_at_a_time_with_the_question_among_samples_alone(
    make_encoder,
):
    encoder = make_encoder("nli")
    samples = drawn(a=["Paris", "Rome", "Paris"], b=["42", "the river Seine"])
    asked = {"a": ("Which city?", "Paris."), "b": ("", "42")}
    rows = compare_samples(encoder, samples, asked, 4)
    assert len(rows) == (6 + 3) + (2 + 2)
    texts = {(one, two): text for one, two, text in samples.iter_rows()}
    for row in rows:
        question, answer = asked[row["example_id"]]
        sides = [texts[row["example_id"], row["premise"]]]
        sides.append(texts.get((row["example_id"], row["hypothesis"]), answer))
        if row["hypothesis"] is not None:
            sides = [f"{question} {side}" for side in sides]
        inputs = encoder.tokenizer(*sides, return_tensors="pt")
        with torch.no_grad():
            c, n, e = encoder.model(**inputs).logits[0].softmax(-1).tolist()
        assert row["entailment"] == pytest.approx(e, abs=1e-4)
        assert row["neutral"] == pytest.approx(n, abs=1e-4)
        assert row["contradiction"] == pytest.approx(c, abs=1e-4)


def test_a_long_question_leaves_the_answers_whole(make_encoder):
    asked = {"a": ("The river is long and wide. " * 60, "Rome")}
    rows = compare_samples(make_encoder("nli"), drawn(a=["Paris", "Rome", "42"]), asked, 4)
    between = {(row["premise"], row["hypothesis"]): row["entailment"] for row in rows}
    assert between[0, 1] != between[0, 2]
    assert between[0, None] != between[1, None]


def test_classes_are_found_by_name():
    assert relation_columns({0: "entailment", 1: "neutral", 2: "contradiction"}) == [0, 1, 2]
    assert relation_columns({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}) == [2, 1, 0]
    with pytest.raises(InputError, match="names its classes entailment, not_entailment; it must"):
        relation_columns({0: "entailment", 1: "not_entailment"})
    with pytest.raises(InputError, match="names its classes LABEL_0, LABEL_1; it must be"):
        relation_columns({0: "LABEL_0", 1: "LABEL_1"})
