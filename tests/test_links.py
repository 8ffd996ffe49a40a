"""No link between pages of the repository is dead, and each page of docs/ is short and listed."""

import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "config/README.md")),
    *(ROOT / f"{folder}/README.md" for folder in ("examples", "profiles", "results")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Named in a message, a comment or a text: what stands there is a page.
NAMED = re.compile(r"(?<![\w/.])docs/[\w/]+\.(?:md|svg|png)")

WRITTEN = r"<!-- written by `make reference` -->.*?<!-- end -->"


def prose(page):
    """A page without its code, where a bracket is no link."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "`", re.sub(r"^    .*$", "", text, flags=re.M))


def anchors(page):
    """The places in a page, by the rule of GitHub and of the site: its headings in lower case."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = [
        unicodedata.normalize("NFKC", title).lower()
        for title in re.findall(r"^#+ (.+)$", text, flags=re.M)
    ]
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title).strip()) for title in titles}


def links(page):
    return re.findall(r"\]\((?!\w+:)([^)\s]+)\)", prose(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_relative_link_leads_somewhere(page):
    for link in links(page):
        path, _, place = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT) and target.exists(), link
        assert not place or place in anchors(target), link


def test_links_are_found():
    assert sum(len(links(page)) for page in PAGES) > 60


def test_what_the_code_names_as_a_page_is_there():
    kinds = {".py", ".smk", ".yaml", ".json", ".md", ".toml"}
    files = [
        path
        for folder in ("workflow_scripts", "rules", "config", "profiles", "benchmarks", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in kinds
    ]
    files += [ROOT / name for name in ("Snakefile", "Containerfile", "Makefile", "AGENTS.md")]
    named = {name for file in files for name in NAMED.findall(file.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert {name for name in named if not (ROOT / name).exists()} == set()


DOCS = sorted((ROOT / "docs").glob("*/*.md"))


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_a_page_is_listed(page):
    name = page.relative_to(ROOT / "docs").as_posix()
    for listing in ("mkdocs.yml", "docs/README.md"):
        assert name in (ROOT / listing).read_text(encoding="utf-8"), listing
