"""Text that figures can draw: only glyphs of their font, wrapped or cut to a width."""

from functools import cache

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from tracecal.figures import style

ELLIPSIS = "…"
NO_GLYPH = "□"


def legible(text: str) -> bool:
    """Whether the figures' font has a glyph for every character, white space aside."""
    return NO_GLYPH not in drawable(text)


def drawable(text: str) -> str:
    """`text` on one line, with empty boxes for characters that the figures' font has no glyph for.

    Control characters, line ends and runs of white space become a space.
    """
    printable = (character if character.isprintable() else " " for character in text)
    known = _characters()
    line = " ".join("".join(printable).split())
    return "".join(c if c == " " or ord(c) in known else NO_GLYPH for c in line)


def shown_token(token: str, length: int = 8) -> str:
    """A token as a label: a token of white space is made visible, a long one is cut."""
    text = drawable(token) or ("↵" if "\n" in token else "␣" if token else "∅")
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def wrapped(figure: Figure, text: str, width: float, lines: int) -> str:
    """`text` on at most `lines` lines of `width` inches in small type, cut where it is longer.

    Lines break at spaces, and within a word that is longer than a line.
    """
    left, shown = drawable(text), []
    while left and len(shown) < lines:
        count = _fitting(figure, left, width)
        space = left[: count + 1].rfind(" ")
        end = space if space > 0 and count < len(left) else count
        shown.append(left[:end].rstrip())
        left = left[end:].lstrip()
    if left:
        last = shown[-1]
        while last and _width(figure, last + ELLIPSIS) > width:
            last = last[:-1]
        shown[-1] = last.rstrip() + ELLIPSIS
    return "\n".join(shown)


def _fitting(figure: Figure, text: str, width: float) -> int:
    """How many characters fit on a line; at least one."""
    count = 1
    while count < len(text) and _width(figure, text[: count + 1]) <= width:
        count += 1
    return count


def _width(figure: Figure, text: str) -> float:
    probe = figure.text(0, 0, text, fontsize=style.SMALL)
    extent = probe.get_window_extent()
    probe.remove()
    return extent.width / figure.dpi


@cache
def _characters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=style.FONTS[0]))).get_charmap())
