"""Responses of Gemini's ``generateContent``, in camel case or the Python client's names.

The API gives ``logprobsResult`` where ``responseLogprobs`` and `logprobs` are asked for. Whether
its log-probabilities are before or after temperature and truncation is not documented.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tracecal.answers.formats.format import Format, Row, split_list
from tracecal.answers.formats.stream import Stream, add_list
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token
from tracecal.answers.reasoning import split_content
from tracecal.answers.step import Step, TokenKey, step_token_ids, token_key
from tracecal.errors import WrongRow


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class LogprobsCandidate(Camel):
    token: str | None = None
    token_id: int | None = None
    log_probability: float | None = None

    @property
    def key(self) -> TokenKey:
        return token_key(self.token_id, self.token)


class TopCandidates(Camel):
    candidates: list[LogprobsCandidate] | None = None


class LogprobsResult(Camel):
    chosen_candidates: list[LogprobsCandidate] | None = None
    top_candidates: list[TopCandidates] | None = None


class GeminiContent(Camel):
    parts: list[dict[str, Any]] | None = None


class GeminiCandidate(Camel):
    content: GeminiContent | None = None
    finish_reason: str | None = None
    logprobs_result: LogprobsResult | None = None


class Gemini(Camel):
    """A response of ``generateContent``."""

    candidates: list[GeminiCandidate] = Field(min_length=1)
    model_version: str | None = None


def read(row: Row) -> RawAnswer:
    """Read the first candidate of a response."""
    response = Gemini.model_validate(row)
    candidate = response.candidates[0]
    content = candidate.content or GeminiContent()
    answer, thoughts = split_content(content.parts)
    steps = _steps(candidate.logprobs_result or LogprobsResult())
    finish = (candidate.finish_reason or "").removeprefix("FinishReason.").lower()
    return RawAnswer(
        answer=answer,
        thoughts=thoughts,
        steps=steps,
        token_ids=step_token_ids(steps),
        finish_reason=finish or None,
        stop_token=infer_stop_token(answer if thoughts is None else None, steps),
        model=response.model_version,
    )


def _steps(result: LogprobsResult) -> list[Step]:
    chosen = result.chosen_candidates or []
    tops = result.top_candidates or [TopCandidates()] * len(chosen)
    if len(tops) != len(chosen):
        raise WrongRow(f"it has {len(chosen)} tokens and {len(tops)} lists of the most likely")
    return [
        Step(
            token.token,
            token.token_id,
            token.log_probability,
            [(token.key, token.log_probability) for token in top.candidates or ()],
            token.key,
        )
        for token, top in zip(chosen, tops, strict=True)
    ]


def recognises(row: Row) -> bool:
    """Whether a row has a list of `candidates` that are objects."""
    candidates = row.get("candidates")
    return isinstance(candidates, list) and all(isinstance(each, dict) for each in candidates)


IDS = ("responseId", "response_id")
FINISHES = ("finishReason", "finish_reason")
LOGPROBS = ("logprobsResult", "logprobs_result")


class GeminiStream(Stream):
    """A response; its pieces share an id, or end with a reason."""

    fields = (("candidates", list),)

    @staticmethod
    def is_piece(value: Row) -> bool:
        """Return whether no candidate of a response has ended."""
        candidates = [each for each in value["candidates"] if isinstance(each, dict)]
        is_open = any(_first(candidate, FINISHES) is None for candidate in candidates)
        return is_open and Stream.is_piece(value)

    def continues(self, piece: Row) -> bool:
        """Whether a piece has this response's id; without ids, whether none has ended it."""
        ids = [_first(row, IDS) for row in (self.answer, piece)]
        return ids[0] == ids[1] if all(ids) else not self.has_ended

    def add(self, piece: Row) -> None:
        """Add what a piece holds."""
        candidates = {row["index"]: row for row in self.answer.get("candidates", ())}
        for number, part in enumerate(piece["candidates"]):
            if isinstance(part, dict):
                index = part["index"] if isinstance(part.get("index"), int) else number
                _add_part(candidates.setdefault(index, {"index": index}), part)
        stated = {name: value for name, value in piece.items() if value is not None}
        self.answer |= stated | {"candidates": [candidates[index] for index in sorted(candidates)]}
        ended = (_first(row, FINISHES) is not None for row in candidates.values())
        self.has_ended = bool(candidates) and all(ended)


def _add_part(candidate: Row, part: Row) -> None:
    """Add a part of a candidate: parts of its content, log-probabilities, why it ended."""
    if isinstance(content := part.get("content"), dict):
        add_list(candidate.setdefault("content", {}), "parts", content.get("parts"))
    for name in LOGPROBS:
        if isinstance(result := part.get(name), dict):
            for field, values in result.items():
                add_list(candidate.setdefault(name, {}), field, values)
    candidate |= {name: part[name] for name in FINISHES if part.get(name) is not None}


def _first(row: Row, names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


FORMAT = Format(
    "gemini",
    recognises,
    Gemini,
    read,
    ("modelVersion",),
    split=lambda row: split_list(row, "candidates"),
)
