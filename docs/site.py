"""What the site has that a folder of pages has not: pages and files that lie beside `docs/`.

`mkdocs.yml` names it as a hook. In the repository every link leads to a file. On the site, links to
the pages below are kept, and a link to any other file outside `docs/` becomes its text. Examples in
docstrings get a heading of their own, as without one Markdown takes `>>>` for a quotation. Names
that `tracecal` imports when they are first used are described as its own.
"""

import ast
import os
import re
from pathlib import Path, PurePosixPath

from griffe import Alias, Extension, Module, Object
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Places on the site of pages outside docs/.
OUTSIDE = {
    "config/README.md": "reference/configuration.md",
    "examples/README.md": "reference/examples.md",
    "CONTRIBUTING.md": "background/contributing.md",
    "CHANGELOG.md": "background/changelog.md",
}
SOURCES = {place: source for source, place in OUTSIDE.items()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/."""
    for source, place in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Lead links to where their files are on the site."""
    place = PurePosixPath(page.file.src_uri)
    here = PurePosixPath(SOURCES.get(str(place), f"docs/{place}"))

    def link(found: re.Match[str]) -> str:
        text, path, anchor = found.groups(default="")
        target = os.path.normpath(here.parent / path)
        if target not in OUTSIDE and not target.startswith("docs/"):
            return text
        on_site = OUTSIDE.get(target) or target.removeprefix("docs/")
        return f"[{text}]({os.path.relpath(on_site, place.parent)}{anchor})"

    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)#\s]+)(#[^)]*)?\)", link, markdown)


def on_page_content(html: str, **_: object) -> str:
    """Outside of blocks, let long names break behind dots, and no percentage before its sign."""
    blocks = re.split(r"(<pre.*?</pre>)", html, flags=re.DOTALL)
    for place in range(0, len(blocks), 2):
        text = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", blocks[place])
        blocks[place] = re.sub(r"<code>[^<\s]{20,}</code>", _with_breaks, text)
    return "".join(blocks)


def _with_breaks(code: re.Match[str]) -> str:
    return re.sub(r"(?<=\w)[._/](?=\w)", r"\g<0><wbr>", code[0])


class Examples(Extension):
    """Put what stands after `>>>` in a docstring under the heading that numpydoc gives examples."""

    def on_object(self, *, obj: Object, **_: object) -> None:
        if obj.docstring and "\nExamples\n---" not in obj.docstring.value:
            begin, prompt, rest = obj.docstring.value.partition("\n>>> ")
            if prompt:
                obj.docstring.value = f"{begin}\nExamples\n--------{prompt}{rest}"


class LazyNames(Extension):
    """Give `tracecal` the names that it imports when they are first used: those of MODULES."""

    def on_module(self, *, mod: Module, **_: object) -> None:
        if mod.path == "tracecal":
            modules = ast.literal_eval(str(mod["MODULES"].value))
            for name, module in modules.items():
                mod.set_member(name, Alias(name, f"tracecal.{module}.{name}", parent=mod))
            mod.exports = [*modules]
