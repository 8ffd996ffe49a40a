"""Bodies of requests and answers: unpacked piece by piece, never above a given size."""

import zlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import orjson

PACKED = ("gzip", "x-gzip", "deflate")
PIECE = 2**16  # bytes
MOST_MEMBERS = 1000  # of a gzip body, which has one: each copies what is left of a chunk
MANY = 200  # brackets, from which on JSON may be nested deeper than it can be written


class UnreadableError(ValueError):
    """A body cannot be unpacked; the message says why, without any of its content."""


class TooLargeError(UnreadableError):
    """A body is larger than allowed."""


async def unpacked(chunks: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The body's bytes without its `Content-Encoding`, in pieces of bounded size.

    Raises `UnreadableError` where they are damaged or the encoding is unknown.
    """
    if encoding.lower() in ("", "identity"):
        async for chunk in chunks:
            yield chunk
        return
    if encoding.lower() not in PACKED:
        raise UnreadableError("its Content-Encoding is none of identity, gzip and deflate")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: gzip or zlib, as the body says
    members = 1
    try:
        async for chunk in chunks:
            while chunk:
                if decoder.eof:  # a gzip body is one member or several, and nothing else
                    members, decoder = members + 1, zlib.decompressobj(zlib.MAX_WBITS | 16)
                if members > MOST_MEMBERS:
                    raise UnreadableError(f"it has more than {MOST_MEMBERS} compressed members")
                yield decoder.decompress(chunk, PIECE)
                chunk = decoder.unconsumed_tail or decoder.unused_data
        yield decoder.flush()
    except zlib.error as error:
        raise UnreadableError("its compressed content is damaged") from error
    if not decoder.eof:
        raise UnreadableError("its compressed content is cut short")


async def read(chunks: AsyncIterable[bytes], most: int) -> bytes:
    """All chunks. Raises `TooLargeError` as soon as they exceed `most` bytes."""
    parts, size = [], 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise TooLargeError(f"it is larger than {most / 1e6:g} MB (--max-body)")
        parts.append(chunk)
    return b"".join(parts)


def parsed(content: bytes) -> Any:
    """The JSON value in `content`; raises `ValueError` where there is none, or one that is nested
    too deeply to be written again in an answer or a state.
    """
    value = orjson.loads(content)
    if content.count(b"[") + content.count(b"{") > MANY:
        try:
            orjson.dumps([[[value]]])
        except orjson.JSONEncodeError as error:
            raise ValueError("it is nested too deeply") from error
    return value


def json_object(content: bytes) -> dict[str, Any] | None:
    """The JSON object in `content`; null where there is none, or one nested too deeply."""
    try:
        value = parsed(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def mentions_logprobs(content: bytes) -> bool:
    """Whether content that cannot be parsed might hold log-probabilities."""
    return b"logprob" in content
