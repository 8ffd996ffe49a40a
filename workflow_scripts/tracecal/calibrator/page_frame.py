"""Pages and pictures from Jinja templates, with the frame, style and macros of this folder.

A page extends page.html; a picture in SVG imports the macros of picture.html.
"""

from pathlib import Path
from typing import Any


def render_page(template: Path, title: str, **values: Any) -> str:
    """Fill in `template`, a page or picture, as text that loads nothing else."""
    # Seldom needed by commands, all of which load this module.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        autoescape=select_autoescape(("html", "svg")),
        undefined=StrictUndefined,
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
    )
    return environment.get_template(template.name).render(title=title, **values)
