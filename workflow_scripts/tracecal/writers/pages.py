"""The report's pages: which results each shows, in which order and under which title."""

from collections.abc import Callable, Mapping
from string import ascii_lowercase
from typing import Any

Words = Mapping[str, str]  # a result's title and caption


class Pages:
    """Pages and results, numbered and lettered, as Snakemake sorts them by name.

    `contents` are the words of each result by page and name.
    """

    def __init__(self, contents: Mapping[str, Mapping[str, Words]]) -> None:
        self.pages = {page: f"{number} {page}" for number, page in enumerate(contents, 1)}
        self.words = {name: words for listed in contents.values() for name, words in listed.items()}
        self.listed = {
            name: (page, f"{number}{letter} {words['title']}")
            for number, (page, listed) in enumerate(contents.items(), 1)
            for letter, (name, words) in zip(ascii_lowercase, listed.items(), strict=False)
        }

    def shown(
        self, name: str, page: str | None = None, kind: str | None = None
    ) -> dict[str, Callable[[Any], Any]]:
        """Arguments of Snakemake's `report` for a result, whose `name` may hold wildcards.

        Its page is the one that lists it unless `page` is given; `kind` is what it is where that
        is not a table.
        """

        def listed(wildcards: Any) -> tuple[str, str]:
            return self.listed[name.format(**dict(wildcards.items()))]

        return {
            "category": lambda wildcards: self.pages[page or listed(wildcards)[0]],
            "labels": lambda wildcards: {
                "result": listed(wildcards)[1] + (f" ({kind})" if kind else "")
            },
        }
