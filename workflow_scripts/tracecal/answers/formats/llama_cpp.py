"""Answers of `/completion` of llama.cpp's server.

Its log-probabilities are of the raw distribution; `prob` is of the distribution that was sampled.
"""

import math

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.logprobs import Token, read_step, require_texts
from tracecal.answers.formats.stream import Stream, add_list, add_text
from tracecal.answers.raw_answer import Known, RawAnswer, infer_stop_token
from tracecal.answers.step import Step, step_token_ids, token_key
from tracecal.errors import WrongRow


class LlamaCpp(BaseModel):
    """An answer of llama.cpp's `/completion`."""

    content: str
    tokens: list[int] | None = None
    stop_type: str | None = None
    model: str | None = None
    completion_probabilities: list[Token] | None = None


def recognises(row: Row) -> bool:
    """Whether a row has the probabilities or the settings of `/completion`."""
    return "completion_probabilities" in row or "generation_settings" in row


def read(row: Row) -> RawAnswer:
    """Read an answer of `/completion`."""
    answer = LlamaCpp.model_validate(row)
    tokens = answer.completion_probabilities or []
    steps = [_step(token) for token in tokens]
    sampled = any(token.get("prob", token.get("probs")) is not None for token in tokens)
    processed: Known = "unknown" if not tokens else "yes" if sampled else "no"
    return RawAnswer(
        answer=answer.content,
        steps=steps,
        token_ids=step_token_ids(steps) or answer.tokens or None,
        finish_reason=answer.stop_type,
        stop_token=infer_stop_token(answer.content, steps),
        processed=processed,
        model=answer.model,
    )


def _step(token: Token) -> Step:
    """The step of a generated token; old builds write `content` and `probs` instead."""
    try:
        if (probs := token.get("probs")) is None:
            top = token.get("top_logprobs") or token.get("top_probs") or ()
            return read_step(_with_logprob(token), [_with_logprob(candidate) for candidate in top])
        # They state the probability of the generated token only in the list of the likeliest ones.
        top = [(token_key(text=token["tok_str"]), _log(token["prob"])) for token in probs]
        require_texts([token["content"]])
        key = token_key(text=token["content"])
        return Step(token["content"], None, dict(top).get(key), top, key)
    except (AttributeError, KeyError, TypeError) as error:
        raise WrongRow("its probabilities are no objects with 'content' and 'probs'") from error


def _with_logprob(token: Token) -> Token:
    """A token with its log-probability, where it states its probability after sampling instead."""
    prob = token.get("prob")
    return token if prob is None else {**token, "logprob": _log(prob)}


def _log(probability: float) -> float | None:
    """ln p; None for 0, the probability of a token that sampling excludes."""
    if math.isnan(probability) or probability < 0:
        raise WrongRow(f"it has the probability {probability:g}")
    return math.log(probability) if probability > 0 else None


# Fields that distinguish a piece from a row with a column `stop`.
OWN = ("completion_probabilities", "id_slot", "tokens_predicted", "slot_id")
JOINED = ("content", "tokens", "completion_probabilities")


class LlamaCppStream(Stream):
    """An answer, whose last piece says `stop`."""

    fields = (("content", str), ("stop", bool))

    @staticmethod
    def is_piece(value: Row) -> bool:
        """Whether an object says that more comes."""
        is_own = any(name in value for name in OWN)
        return is_own and not value["stop"] and Stream.is_piece(value)

    def add(self, piece: Row) -> None:
        """Add what a piece holds."""
        self.answer |= {name: value for name, value in piece.items() if name not in JOINED}
        add_text(self.answer, "content", piece["content"])
        for name in ("tokens", "completion_probabilities"):
            add_list(self.answer, name, piece.get(name))
        self.answer.setdefault("completion_probabilities", [])  # identifies the format
        self.has_ended = piece["stop"]


FORMAT = Format("llama_cpp", recognises, LlamaCpp, read)
