"""The explorer as one self-contained HTML file: data, style and program inside.

The data are gzipped JSON in base64, which browsers can decompress and from which no text can escape
into the page; the program inserts every text as a text node. The page's Content-Security-Policy
forbids loading anything or running any other program; where verdicts are given on it, it may send
them to the server that it came from.
"""

import gzip
import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

from tracecal.calibrator.page_frame import render_page

BROWSER = Path(__file__).parent / "browser"
PARTS = (
    "data parts elements notes state shares overview list copying beside answer opening label main"
)
PROGRAM = tuple(BROWSER / f"{name}.js" for name in PARTS.split())
STYLE, PAGE = BROWSER / "style.css", BROWSER / "page.html"
SOURCES = (PAGE, STYLE, *PROGRAM)


def page(data: dict[str, Any]) -> str:
    """The page that shows `data` (see `contents`), the same bytes for the same data."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    style = _read(STYLE)
    program = "\n".join(map(_read, PROGRAM))
    return render_page(
        PAGE,
        data["run"],
        policy=f"default-src 'none'; style-src '{_fingerprint(style)}'; "
        f"script-src '{_fingerprint(program)}'; base-uri 'none'; form-action 'none'"
        + ("; connect-src 'self'" if "labelling" in data else ""),
        style=style,
        program=program,
        # Level 9 takes seven times as long and saves 2 %.
        packed=b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode(),
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _fingerprint(source: str) -> str:
    """The name of an inline style or program in a policy: the hash of its bytes."""
    return f"sha256-{b64encode(sha256(source.encode()).digest()).decode()}"
