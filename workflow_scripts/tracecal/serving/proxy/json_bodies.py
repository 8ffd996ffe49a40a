"""Bodies of requests and answers: unpacked piece by piece within bounds, and parsed as JSON."""

import json
import re
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any

import orjson
from aiohttp import ClientResponse

Object = dict[str, Any]
COMPRESSED = ("gzip", "x-gzip", "deflate")
PIECE = 2**16  # bytes
MAX_MEMBERS = 1000  # of a gzip body, which usually has one: each copies the rest of a chunk
MANY_BRACKETS = 200  # JSON with more may be nested deeper than it can be written
BOM = b"\xef\xbb\xbf"
# Character sets in which ASCII letters are those of UTF-8.
CHARSETS = ("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252")
GAP = re.compile(r"[ \t\n\r]*[:,{]?[ \t\n\r]*")


class UnreadableError(ValueError):
    """A body cannot be unpacked; the message says why, without any of its content."""


class TooLargeError(UnreadableError):
    """A body is larger than allowed."""


async def read_body(chunks: AsyncIterable[bytes], encoding: str, max_bytes: int) -> bytes:
    """Return a whole body, unpacked from its `Content-Encoding`.

    Raises `TooLargeError` as soon as it exceeds `max_bytes`, otherwise as `unpack`.
    """
    parts, size = [], 0
    async for chunk in unpack(chunks, encoding):
        size += len(chunk)
        if size > max_bytes:
            raise TooLargeError(f"it is larger than {max_bytes / 1e6:g} MB (--max-body)")
        parts.append(chunk)
    return b"".join(parts)


async def unpack(chunks: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield a body's bytes without its `Content-Encoding`, in pieces of bounded size.

    Raises `UnreadableError` where the body is damaged or the encoding is unknown.
    """
    if encoding.lower() in ("", "identity"):
        async for chunk in chunks:
            yield chunk
        return
    if encoding.lower() not in COMPRESSED:
        raise UnreadableError("its Content-Encoding is none of identity, gzip and deflate")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: gzip or zlib, as the body says
    n_members = 1
    try:
        async for chunk in chunks:
            while chunk:
                if decoder.eof:  # a gzip body is one member or several, and nothing else
                    n_members += 1
                    decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
                if n_members > MAX_MEMBERS:
                    raise UnreadableError(f"it has more than {MAX_MEMBERS} compressed members")
                yield decoder.decompress(chunk, PIECE)
                chunk = decoder.unconsumed_tail or decoder.unused_data
        yield decoder.flush()
    except zlib.error as error:
        raise UnreadableError("its compressed content is damaged") from error
    if not decoder.eof:
        raise UnreadableError("its compressed content is cut short")


def require_utf8(response: ClientResponse) -> None:
    """Close a response and raise `UnreadableError` where it states a charset in which it reads
    otherwise than in UTF-8."""
    if (response.charset or CHARSETS[0]).lower() not in CHARSETS:
        response.close()
        raise UnreadableError("the charset of its answer is not UTF-8")


def with_members(content: bytes, additions: Mapping[str, Any]) -> bytes:
    """Return a JSON object with `additions` in place of members of their names.

    The other members keep their text: numbers may have more digits than Python's or ours.

    >>> with_members(b'{"seed": 99999999999999999999, "top": 1}', {"top": 2})
    b'{"seed":99999999999999999999,"top":2}'
    """
    text = content.removeprefix(BOM).decode()
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)  # whose values nobody reads
    members: dict[str, Any] = {}
    position = _behind_gap(text, 0)
    while text[position] != "}":
        name, position = decoder.raw_decode(text, position)
        start = _behind_gap(text, position)
        _, position = decoder.raw_decode(text, start)
        members[name] = orjson.Fragment(text[start:position])
        position = _behind_gap(text, position)
    return orjson.dumps(members | additions)


def _behind_gap(text: str, position: int) -> int:
    match = GAP.match(text, position)
    return match.end() if match else position


def parse_json(content: bytes) -> Any:
    """Return the JSON value in `content`, which a byte order mark may precede.

    Raises `ValueError` where there is none, or one nested too deeply to be written again.
    """
    value = orjson.loads(content.removeprefix(BOM))
    if content.count(b"[") + content.count(b"{") > MANY_BRACKETS:
        try:
            orjson.dumps([[[value]]])
        except orjson.JSONEncodeError as error:
            raise ValueError("it is nested too deeply") from error
    return value


def json_object(content: bytes) -> Object | None:
    """Return the JSON object in `content`; None where there is none, or one nested too deeply.

    >>> json_object(b'{"a": 1}'), json_object(b"[1]")
    ({'a': 1}, None)
    """
    try:
        value = parse_json(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
