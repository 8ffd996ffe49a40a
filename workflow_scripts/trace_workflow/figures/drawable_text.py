"""Text of answers that a figure can draw: glyphs that its font has, lines that fit."""

from functools import cache

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from trace_workflow.figures import figure_style as style

ELLIPSIS = "…"
NO_GLYPH = "□"


def is_legible(text: str) -> bool:
    """Whether the figures' font has a glyph for every character, white space aside."""
    return NO_GLYPH not in drawable(text)


def drawable(text: str) -> str:
    """`text` on one line, with empty boxes for characters that the figures' font has no glyph for.

    Control characters, line ends and runs of white space become a space.
    """
    printable = (character if character.isprintable() else " " for character in text)
    glyphs = _glyphs()
    line = " ".join("".join(printable).split())
    return "".join(c if c == " " or ord(c) in glyphs else NO_GLYPH for c in line)


def token_label(token: str, length: int = 8) -> str:
    """A token as a label: a token of white space is made visible, a long one is cut.

    >>> token_label(" Canberra city"), token_label(" ")
    ('Canberr…', '␣')
    """
    text = drawable(token) or ("↵" if "\n" in token else "␣" if token else "∅")
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def wrap(figure: Figure, text: str, width: float, n_lines: int) -> str:
    """`text` on at most `n_lines` lines of `width` inches in small type, cut where it is longer.

    Lines break at spaces, and within a word that is longer than a line.
    """
    rest, lines = drawable(text), []
    while rest and len(lines) < n_lines:
        n_fitting = 1
        while n_fitting < len(rest) and _width(figure, rest[: n_fitting + 1]) <= width:
            n_fitting += 1
        space = rest[: n_fitting + 1].rfind(" ")
        end = space if space > 0 and n_fitting < len(rest) else n_fitting
        lines.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    if rest:
        last = lines[-1]
        while last and _width(figure, last + ELLIPSIS) > width:
            last = last[:-1]
        lines[-1] = last.rstrip() + ELLIPSIS
    return "\n".join(lines)


def _width(figure: Figure, text: str) -> float:
    probe = figure.text(0, 0, text, fontsize=style.SMALL, parse_math=False)
    extent = probe.get_window_extent()
    probe.remove()
    return extent.width / figure.dpi


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=style.FONTS[0]))).get_charmap())
