"""Comparing sampled answers with one another and with the decoded answer, by an NLI model."""

from collections.abc import Mapping, Sequence
from itertools import permutations

import polars as pl
import pyarrow as pa

from trace_workflow.models.text_encoders import TextEncoder
from tracecal.errors import InputError

COMPARISONS = pa.schema(
    {
        "example_id": pa.string(),
        "premise": pa.int32(),
        "hypothesis": pa.int32(),
        "entailment": pa.float32(),
        "neutral": pa.float32(),
        "contradiction": pa.float32(),
    }
)
_RELATIONS = ("entailment", "neutral", "contradiction")


def compare_samples(
    encoder: TextEncoder,
    samples: pl.DataFrame,
    answers: Mapping[str, tuple[str, str]],
    batch_size: int,
) -> list[dict[str, object]]:
    """One row per premise and hypothesis, with the probabilities of the three relations.

    Every sample is compared with every other sample of its example and with the decoded answer,
    whose `hypothesis` is None. `samples` have `example_id`, `sample` and `text`; `answers` maps an
    example to its question and decoded answer. Among samples both sides begin with the question, as
    in semantic entropy's code; with the decoded answer neither does, as in SelfCheckGPT's.
    """
    rows, texts = [], []
    for (example,), of_example in samples.sort("sample").group_by(
        "example_id", maintain_order=True
    ):
        question, answer = answers[example]
        sampled = dict(zip(of_example["sample"], of_example["text"], strict=True))
        pairs = [*permutations(sampled, 2), *((sample, None) for sample in sampled)]
        for premise, hypothesis in pairs:
            rows.append({"example_id": example, "premise": premise, "hypothesis": hypothesis})
            between_samples = hypothesis is not None
            texts.append(
                (
                    question if between_samples else "",
                    sampled[premise],
                    sampled[hypothesis] if between_samples else answer,
                )
            )
    distinct = list(dict.fromkeys(texts))
    probabilities = dict(zip(distinct, _probabilities(encoder, distinct, batch_size), strict=True))
    return [
        row | dict(zip(_RELATIONS, probabilities[text], strict=True))
        for row, text in zip(rows, texts, strict=True)
    ]


def _probabilities(
    encoder: TextEncoder, texts: Sequence[tuple[str, str, str]], batch_size: int
) -> list[list[float]]:
    """Entailment, neutral and contradiction of each (question, premise, hypothesis)."""
    order = relation_columns(encoder.model.config.id2label)
    longer = [max(premise, hypothesis, key=len) for _, premise, hypothesis in texts]
    questions = encoder.truncated_questions(
        [question for question, _, _ in texts], longer, encoder.room(2)
    )
    pairs = [
        (f"{question} {premise}".lstrip(), f"{question} {hypothesis}".lstrip())
        for question, (_, premise, hypothesis) in zip(questions, texts, strict=True)
    ]
    return encoder.read_all(
        pairs, batch_size, lambda inputs, output: output.logits.softmax(-1)[:, order].tolist()
    )


def relation_columns(labels: Mapping[int, str]) -> list[int]:
    """The logits' columns of entailment, neutral and contradiction; raises `InputError`."""
    columns = {label.lower(): index for index, label in labels.items()}
    if set(columns) != set(_RELATIONS):
        raise InputError(
            f"encoders.entailment names its classes {', '.join(map(str, labels.values()))}; it "
            "must be an NLI model whose config.json has the labels entailment, neutral and "
            "contradiction in id2label, such as microsoft/deberta-large-mnli."
        )
    return [columns[relation] for relation in _RELATIONS]
