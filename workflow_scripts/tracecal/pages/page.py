"""A page of a calibrator: a Jinja template filled in, with the head and style of page.html."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape


def render_page(template: Path, title: str, **values: Any) -> str:
    """Fill in `template`, which extends page.html, as a self-contained page of HTML."""
    environment = Environment(
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
    )
    return environment.get_template(template.name).render(title=title, **values)
