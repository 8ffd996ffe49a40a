"""Streams of Text Generation Inference's `/generate_stream`."""

from tracecal.answers.formats.format import Row
from tracecal.answers.streams.stream import Stream, add_text


class TGIStream(Stream):
    """An answer, a token a piece, whose last piece has the whole text."""

    @staticmethod
    def recognises(value: Row) -> bool:
        """Whether an event has a `token` beside a text that may be missing yet."""
        return isinstance(value.get("token"), dict) and "generated_text" in value

    def add(self, piece: Row) -> None:
        """Add a token, with the likeliest ones."""
        answer, token = self.answer, piece["token"]
        details = answer.setdefault("details", {"tokens": [], "top_tokens": []})
        details["tokens"].append(token)
        details["top_tokens"].append(piece.get("top_tokens") or [])
        answer.setdefault("generated_text", "")
        if not token.get("special"):
            add_text(answer, "generated_text", token.get("text"))
        if isinstance(text := piece["generated_text"], str):
            answer["generated_text"], self.has_ended = text, True
        if isinstance(ending := piece.get("details"), dict):
            details["finish_reason"] = ending.get("finish_reason")
