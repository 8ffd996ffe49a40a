"""MARS's weights: the phrases of an answer and how much each contributes to its meaning.

The importance model is a BERT token classifier on question and answer. Of a token's three logits
the first is larger where a phrase begins, the second where one goes on; the logistic of the third
is the importance of a phrase that begins there.
"""

import math
from collections.abc import Sequence
from time import monotonic

import pyarrow as pa
import torch

from tracecal.errors import InputError
from tracecal.jobs.progress import LOGGER
from tracecal.weigh.encoder import Encoder, read_all, truncated_questions
from tracecal.weigh.phrases import Phrases, token_phrases, visible_texts, word_phrases

PHRASE_WEIGHTS = pa.schema(
    {
        "example_id": pa.string(),
        "phrase": pa.list_(pa.int32()),
        "weight": pa.list_(pa.float32()),
    }
)


def phrase_weights(
    encoder: Encoder | None,
    answers: Sequence[dict],
    special: frozenset[int],
    languages: Sequence[str],
    temperature: float,
    batch_size: int,
) -> list[dict[str, object]]:
    """`example_id`, the `phrase` of each token (null: special) and the `weight` of each phrase.

    `answers` have `example_id`, `question`, `language`, `token_ids` and `tokens`. In languages
    other than `languages` every word is a phrase of equal weight.
    """
    started = monotonic()
    texts = [visible_texts(row["token_ids"], row["tokens"], special) for row in answers]
    phrases_of_answers = [word_phrases("".join(pieces)) for pieces in texts]
    covered = [index for index, row in enumerate(answers) if _covers(languages, row["language"])]
    if encoder and covered:
        pairs = [(answers[index]["question"], "".join(texts[index])) for index in covered]
        for index, phrases in zip(covered, model_phrases(encoder, pairs, batch_size), strict=True):
            phrases_of_answers[index] = phrases
    LOGGER.info(
        "%d answers, %d of them in a language that the importance model covers, in %.1f s",
        len(answers),
        len(covered) if encoder else 0,
        monotonic() - started,
    )
    rows = []
    for row, pieces, phrases in zip(answers, texts, phrases_of_answers, strict=True):
        visible = [token not in special for token in row["token_ids"]]
        numbers, importance = token_phrases(pieces, visible, phrases)
        weights = softmax(importance, temperature)
        rows.append({"example_id": row["example_id"], "phrase": numbers, "weight": weights})
    return rows


def _covers(languages: Sequence[str], language: str | None) -> bool:
    return (language or "").lower().replace("_", "-").split("-")[0] in languages


def model_phrases(
    encoder: Encoder, pairs: Sequence[tuple[str, str]], batch_size: int
) -> list[Phrases]:
    """The importance model's phrases of each (question, answer)."""
    if encoder.model.config.num_labels != 3:
        raise InputError(
            f"{encoder.model.name_or_path} has {encoder.model.config.num_labels} outputs per "
            "token; encoders.importance must have three (a phrase begins, goes on, importance), "
            "as duygunuryldz/MARS does."
        )
    questions = truncated_questions(encoder, *zip(*pairs, strict=True), room=2 * encoder.room(2))
    fitted = [(question, answer) for question, (_, answer) in zip(questions, pairs, strict=True)]
    logits = read_all(encoder, fitted, batch_size, lambda inputs, output: output.logits.cpu())
    encoded = encoder.tokenizer(
        fitted, truncation=True, max_length=encoder.window, return_offsets_mapping=True
    )
    return [
        phrases_of(logits[index], encoded.sequence_ids(index), encoded.word_ids(index), spans)
        for index, spans in enumerate(encoded["offset_mapping"])
    ]


def phrases_of(
    logits: torch.Tensor,
    sequences: Sequence[int | None],
    words: Sequence[int | None],
    spans: Sequence[tuple[int, int]],
) -> Phrases:
    """Phrases from the logits [tokens, 3] of one pair; none begins inside a word.

    `sequences` is 1 for the answer's tokens, `words` their word and `spans` their characters.
    """
    begins = (logits[:, 0] >= logits[:, 1]).tolist()
    scores = logits[:, 2].sigmoid().tolist()
    starts: list[int] = []
    importance: list[float] = []
    previous = None
    for index, (sequence, word, (start, _)) in enumerate(zip(sequences, words, spans, strict=True)):
        if sequence != 1:
            continue
        if previous is None or (begins[index] and word != previous):
            starts.append(start)
            importance.append(scores[index])
        previous = word
    return Phrases(starts, importance)


def softmax(importance: Sequence[float], temperature: float) -> list[float]:
    """The phrases' weights, which sum to 1; empty without phrases."""
    largest = max(importance, default=0.0)
    powers = [math.exp((value - largest) / temperature) for value in importance]
    return [power / sum(powers) for power in powers]
