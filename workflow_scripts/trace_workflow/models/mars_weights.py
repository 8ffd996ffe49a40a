"""MARS's weights: the phrases of an answer and how much each contributes to its meaning."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import torch

from trace_workflow.models.text_encoders import TextEncoder, visible_texts
from tracecal.errors import InputError

# Scripts without spaces between words: each character counts as a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(f"[{_UNSPACED}]|[^\\s{_UNSPACED}]+")


@dataclass(frozen=True)
class Phrases:
    """Where an answer's phrases begin (ascending character offsets), and how important each is."""

    starts: list[int]
    importance: list[float]


def word_phrases(text: str) -> Phrases:
    """Every word (in scripts without spaces, every character) as a phrase of equal importance."""
    starts = [match.start() for match in _WORD.finditer(text)]
    return Phrases(starts, [0.0] * len(starts))


def token_phrases(
    texts: Sequence[str], visible: Sequence[bool], phrases: Phrases
) -> tuple[list[int | None], list[float]]:
    """The phrase of each token, and the importance of each phrase.

    `texts` are what the tokens add to the answer; a token that is not `visible` adds nothing and
    has the phrase None. A token belongs to the phrase of its first character that is not a space; a
    token of spaces alone, or of part of a character, belongs to the phrase that follows. A phrase
    in which no token begins joins the phrase before it, and their importances are averaged.
    """
    phrase_of_token: list[int | None] = []
    offset = started = 0  # characters passed; phrases that begin at `offset` or before
    for text, is_visible in zip(texts, visible, strict=True):
        spaces = len(text) - len(text.lstrip())
        while started < len(phrases.starts) and phrases.starts[started] <= offset + spaces:
            started += 1
        phrase_of_token.append(max(started - 1, 0) if is_visible else None)
        offset += len(text)
    return _merged(phrase_of_token, phrases.importance)


def _merged(
    phrase_of_token: list[int | None], importance: list[float]
) -> tuple[list[int | None], list[float]]:
    """Phrases renumbered without gaps: a phrase without a token joins its neighbour."""
    nonempty = sorted({phrase for phrase in phrase_of_token if phrase is not None})
    if not nonempty:
        return phrase_of_token, []
    number = {phrase: index for index, phrase in enumerate(nonempty)}
    ends = [*nonempty[1:], max(len(importance), nonempty[-1] + 1)]
    begins = [0, *nonempty[1:]]
    means = [
        sum(members) / len(members) if (members := importance[begin:end]) else 0.0
        for begin, end in zip(begins, ends, strict=True)
    ]
    return [None if phrase is None else number[phrase] for phrase in phrase_of_token], means


PHRASE_WEIGHTS = pa.schema(
    {"example_id": pa.string(), "phrase": pa.list_(pa.int32()), "weight": pa.list_(pa.float32())}
)


def phrase_weights(
    encoder: TextEncoder | None,
    answers: Sequence[dict],
    special: frozenset[int],
    languages: Sequence[str],
    temperature: float,
    batch_size: int,
) -> list[dict[str, object]]:
    """`example_id`, the `phrase` of each token (None: special) and the `weight` of each phrase.

    `answers` have `example_id`, `question`, `language`, `token_ids` and `tokens`. In languages
    other than `languages` every word is a phrase of equal weight.
    """
    texts = [visible_texts(row["token_ids"], row["tokens"], special) for row in answers]
    phrases_of_answers = [word_phrases("".join(pieces)) for pieces in texts]
    covered = [index for index, row in enumerate(answers) if _covers(languages, row["language"])]
    if encoder and covered:
        pairs = [(answers[index]["question"], "".join(texts[index])) for index in covered]
        for index, phrases in zip(covered, model_phrases(encoder, pairs, batch_size), strict=True):
            phrases_of_answers[index] = phrases
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
    encoder: TextEncoder, pairs: Sequence[tuple[str, str]], batch_size: int
) -> list[Phrases]:
    """The importance model's phrases of each (question, answer)."""
    if encoder.model.config.num_labels != 3:
        raise InputError(
            f"{encoder.model.name_or_path} has {encoder.model.config.num_labels} outputs per "
            "token; encoders.importance must have three (a phrase begins, goes on, importance), "
            "as duygunuryldz/MARS does."
        )
    questions = encoder.truncated_questions(*zip(*pairs, strict=True), room=2 * encoder.room(2))
    fitted = [(question, answer) for question, (_, answer) in zip(questions, pairs, strict=True)]
    logits = encoder.read_all(fitted, batch_size, lambda inputs, output: output.logits.cpu())
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
    """The weights of the phrases, which sum to 1; empty without phrases."""
    largest = max(importance, default=0.0)
    powers = [math.exp((value - largest) / temperature) for value in importance]
    return [power / sum(powers) for power in powers]
