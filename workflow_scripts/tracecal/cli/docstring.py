"""A numpydoc docstring as a command's help shows it: its prose, and the text of each parameter."""

import inspect
import re
from typing import NamedTuple

HEADING = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^\*{0,2}(\w+(?:, \*{0,2}\w+)*)(?: :.*)?$")


class Docstring(NamedTuple):
    """Paragraphs before the first section, and what stands below each name of 'Parameters'.

    A paragraph is one line, which the help wraps.
    """

    prose: str
    parameters: dict[str, str]


def read_docstring(documented: object) -> Docstring:
    """Read the docstring of a function or class, without its marks of code."""
    text = re.sub(
        r"`+", "", (documented if isinstance(documented, str) else inspect.getdoc(documented)) or ""
    )
    prose, *sections = HEADING.split(text)
    body = dict(zip(sections[::2], sections[1::2], strict=True)).get("Parameters", "")
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in filter(str.strip, body.splitlines()):
        if not line[0].isspace() and (entry := ENTRY.match(line)):
            names = re.findall(r"\w+", entry[1])
        else:
            texts |= {name: f"{texts.get(name, '')} {line.strip()}".strip() for name in names}
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", prose.strip()))
    return Docstring("\n\n".join(paragraphs), texts)
