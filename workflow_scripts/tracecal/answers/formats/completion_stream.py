"""Streams of chat completions and of older completions."""

from tracecal.answers.formats.format import Row
from tracecal.answers.formats.stream import Stream, add_list, add_text
from tracecal.answers.raw_answer import is_finish
from tracecal.answers.reasoning import split_content

CHUNKS = ("chat.completion.chunk", "text_completion.chunk")


class CompletionStream(Stream):
    """A completion, whose chunks have its id."""

    fields = (("choices", list),)

    @staticmethod
    def is_piece(value: Row) -> bool:
        """Whether an object says that it is a chunk."""
        return value.get("object") in CHUNKS

    def continues(self, piece: Row) -> bool:
        """Whether a chunk has this answer's id."""
        return bool(self.answer["id"] == piece.get("id"))

    def add(self, piece: Row) -> None:
        """Add what a chunk holds."""
        answer = self.answer
        answer.setdefault("id", piece.get("id"))
        answer.setdefault("choices", [])
        answer |= {name: value for name, value in piece.items() if name != "choices" and value}
        answer.pop("object", None)
        choices = {choice["index"]: choice for choice in answer["choices"]}
        for part in filter(lambda part: isinstance(part, dict), piece["choices"]):
            index = part["index"] if isinstance(part.get("index"), int) else 0
            if index not in choices:
                choices[index] = {"index": index, "finish_reason": None}
                answer["choices"].append(choices[index])
            _add_part(choices[index], part)


def _add_part(choice: Row, part: Row) -> None:
    """Add a part of a choice: texts are joined, lists extended."""
    if isinstance(delta := part.get("delta"), dict):
        message = choice.setdefault("message", {"content": ""})
        if isinstance(contents := delta.get("content"), list):  # as Mistral has it
            text, thoughts = split_content(contents)
            delta = delta | {"content": text, "reasoning_content": thoughts}
        for name in ("content", "reasoning_content", "reasoning"):
            add_text(message, name, delta.get(name))
    add_text(choice, "text", part.get("text"))
    add_list(choice, "token_ids", part.get("token_ids"))
    if isinstance(logprobs := part.get("logprobs"), dict):
        joined = choice.setdefault("logprobs", {})
        for name, values in logprobs.items():
            add_list(joined, name, values)
    if is_finish(part.get("finish_reason")):
        choice["finish_reason"] = part["finish_reason"]
    if part.get("stop_reason") is not None:
        choice["stop_reason"] = part["stop_reason"]
