"""Bodies of requests and answers: read within bounds, and parsed as JSON."""

import asyncio
import json
from collections.abc import AsyncIterable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import orjson
from aiohttp import ClientResponse

Object = dict[str, Any]
MANY_BRACKETS = 200  # JSON with more may be nested deeper than it can be written
# Of a request: parsing takes one step of a quarter of a second at most, in which all others wait.
MAX_VALUES = 500_000
LARGE, HUGE = 2**20, 2**23  # bytes of bodies on which the event loop does not work itself
CHOICE = 2**12  # bytes that are read while a choice is scored
# One for each size, so that a large body waits for no huge one; the event loop waits for each.
LARGE_WORKER, HUGE_WORKER = (ThreadPoolExecutor(1, f"{size} bodies") for size in ("large", "huge"))
# Runs of digits, as PLAIN shows them, of whole numbers and fractions that may not fit our types.
PLAIN = bytes(byte if byte == ord(".") else ord(" 0"[chr(byte).isdecimal()]) for byte in range(256))
LONG_NUMBERS = (b" " + 19 * b"0", b"." + 23 * b"0")
BOM = b"\xef\xbb\xbf"
# Character sets in which ASCII letters are those of UTF-8.
CHARSETS = ("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252")
Result = TypeVar("Result")


class UnreadableError(ValueError):
    """A body cannot be read; the message says why, without any of its content."""


class TooLargeError(UnreadableError):
    """A body is larger than allowed."""


class Numeral(float):
    """A number of JSON that keeps its digits."""

    def __new__(cls, text: str) -> "Numeral":
        numeral = super().__new__(cls, text)
        numeral.text = text
        return numeral


def scoring_size(answer_size: int, request_size: int, n_choices: int) -> int:
    """Bytes to work on where an answer is scored, whose request is read with each choice."""
    return answer_size + n_choices * (request_size + CHOICE)


async def work_on(size: int, work: Callable[..., Result], *args: Any) -> Result:
    """Return the result of work on bodies of `size` bytes, done in a thread where that is LARGE."""
    if size < LARGE:
        return work(*args)
    worker = LARGE_WORKER if size < HUGE else HUGE_WORKER
    return await asyncio.get_running_loop().run_in_executor(worker, work, *args)


async def read_body(chunks: AsyncIterable[bytes], max_bytes: int) -> bytes:
    """Return a whole body; raise `TooLargeError` as soon as it exceeds `max_bytes`."""
    parts, size = [], 0
    async for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise TooLargeError(f"it is larger than {max_bytes / 1e6:g} MB (--max-body)")
        parts.append(chunk)
    return b"".join(parts)


def require_uncompressed(headers: Mapping[str, str]) -> None:
    """Raise `UnreadableError` where a body has a `Content-Encoding`."""
    if headers.get("Content-Encoding", "").lower() not in ("", "identity"):
        raise UnreadableError("it is compressed (Content-Encoding)")


def require_plain(response: ClientResponse) -> None:
    """Close a response and raise `UnreadableError` where it is compressed, or states a charset in
    which it reads otherwise than in UTF-8."""
    try:
        require_uncompressed(response.headers)
        if (response.charset or CHARSETS[0]).lower() not in CHARSETS:
            raise UnreadableError("the charset of its answer is not UTF-8")
    except UnreadableError:
        response.close()
        raise


def require_few_values(content: bytes) -> None:
    """Raise `TooLargeError` for JSON of more than MAX_VALUES members and items.

    What looks like one in a text counts, too.
    """
    if sum(content.count(mark) for mark in (b",", b":", b"[", b"{")) > MAX_VALUES:
        raise TooLargeError(f"it has more than {MAX_VALUES:,} values")


def parse_json(content: bytes) -> Any:
    """Return the JSON value in `content`, which a byte order mark may precede.

    Numbers that our types cannot hold are Numerals. Raises `ValueError` where there is no value, or
    one nested too deeply to be written again.
    """
    content = content.removeprefix(BOM)
    value = orjson.loads(content)
    if content.count(b"[") + content.count(b"{") > MANY_BRACKETS:
        try:
            orjson.dumps([[[value]]])
        except orjson.JSONEncodeError as error:
            raise ValueError("it is nested too deeply") from error
    plain = content.translate(PLAIN)
    if any(number in plain for number in LONG_NUMBERS):
        return json.loads(content, parse_int=_whole_number, parse_float=Numeral)
    return value


def objects_in(value: Any) -> list[Object]:
    """The objects of a list; none of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def write_json(value: Any) -> bytes:
    """Return a value as JSON, in which numbers have the digits that they were read with.

    >>> write_json(parse_json(b'{"seed": 99999999999999999999, "top": 1}') | {"top": 2})
    b'{"seed":99999999999999999999,"top":2}'
    """
    return orjson.dumps(value, default=lambda numeral: orjson.Fragment(numeral.text))


def _whole_number(text: str) -> int | Numeral:
    is_exact = len(text) <= 20 and -(2**63) <= int(text) < 2**64
    return int(text) if is_exact else Numeral(text)
