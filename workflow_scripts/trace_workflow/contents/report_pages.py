"""The pages of the report: which results each page shows, in which order, under which title."""

from collections.abc import Callable, Mapping
from string import ascii_lowercase
from typing import Any

Words = Mapping[str, str]  # a result's title and caption


class ReportPages:
    """Pages and results, numbered and lettered, as Snakemake sorts them by name.

    `contents` holds the words of each result by page and name, as in report/contents.yaml;
    `of_models` has the tables that follow another one, by name: that one and a model's label.

    >>> pages = ReportPages({"Which wins?": {"main": {"title": "Main comparison"}}})
    >>> pages.pages["Which wins?"], pages.entries["main"]
    ('1 Which wins?', ('Which wins?', '1a Main comparison'))
    """

    def __init__(
        self,
        contents: Mapping[str, Mapping[str, Words]],
        of_models: Mapping[str, tuple[str, str]] = {},
    ) -> None:
        self.pages = {page: f"{number} {page}" for number, page in enumerate(contents, 1)}
        self.words = {
            name: words for results in contents.values() for name, words in results.items()
        }
        self.entries = {
            name: (page, f"{number}{letter} {words['title']}")
            for number, (page, results) in enumerate(contents.items(), 1)
            for letter, (name, words) in zip(ascii_lowercase, results.items(), strict=False)
        }
        for name, (kind, label) in of_models.items():
            page, title = self.entries[kind]
            self.entries[name] = (page, f"{title}: {label}")
            self.words[name] = {
                **self.words[kind],
                "title": f"{self.words[kind]['title']}: {label}",
            }

    def report_arguments(
        self, name: str, page: str | None = None, kind: str | None = None
    ) -> dict[str, Callable[[Any], Any]]:
        """Arguments of Snakemake's `report` for a result, whose `name` may hold wildcards.

        The result stands on `page`, or else on the page that lists it; `kind` says what it is where
        it is not a table.
        """

        def entry(wildcards: Any) -> tuple[str, str]:
            return self.entries[name.format(**dict(wildcards.items()))]

        return {
            "category": lambda wildcards: self.pages[page or entry(wildcards)[0]],
            "labels": lambda wildcards: {
                "result": entry(wildcards)[1] + (f" ({kind})" if kind else "")
            },
        }
