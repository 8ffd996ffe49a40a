"""The explorer as one self-contained HTML file: data, style and program inside.

The data are gzipped JSON in base64, so no text in them can break out, and browsers can unpack them;
the program inserts every text as text. The page's Content-Security-Policy forbids loading anything
or running any other program.
"""

import gzip
import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

BROWSER = Path(__file__).parent / "browser"
PROGRAM = tuple(
    BROWSER / f"{name}.js"
    for name in "data elements state overview list copying beside answer main".split()
)
STYLE, PAGE = BROWSER / "style.css", BROWSER / "page.html"
SOURCES = (PAGE, STYLE, *PROGRAM)


def page(data: dict[str, Any]) -> str:
    """The page that shows `data` (see `contents`), the same bytes for the same data."""
    style = _read(STYLE)
    program = "\n".join(map(_read, PROGRAM))
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.from_string(_read(PAGE)).render(
        run=data["run"],
        policy=f"default-src 'none'; style-src '{_fingerprint(style)}'; "
        f"script-src '{_fingerprint(program)}'; base-uri 'none'; form-action 'none'",
        style=style,
        program=program,
        packed=_packed(data),
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _fingerprint(source: str) -> str:
    """The name of an inline style or program in a policy: the hash of its bytes."""
    return f"sha256-{b64encode(sha256(source.encode()).digest()).decode()}"


def _packed(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Level 9 takes seven times as long and saves 2 %.
    return b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
