"""Captions of tables, the report's pages, and the rows of tables of averages.

The rules import this at every start of the workflow, so it is kept apart from the tables."""

from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase
from typing import Any


def filled(
    words: Mapping[str, str], facts: Mapping[str, object], as_printed: bool = False
) -> dict[str, str]:
    """`title` and `caption` of a table, the caption's {placeholders} replaced by facts.

    `as_printed` leaves out what the caption says about additions to the paper's table.
    """
    parts = [words["caption"], "" if as_printed else words.get("added", "")]
    caption = " ".join(filter(None, (part.strip() for part in parts)))
    return {"title": words["title"], "caption": caption.format_map(facts)}


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str]) -> str:
    """ "A", "A and B", "A, B and C"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def note(sentence: str, parts: Sequence[str]) -> list[str]:
    """The note that `sentence` applies to `parts`; none where there are no parts."""
    return [f"{sentence}: {'; '.join(parts)}."] if parts else []


# The estimators that tables of averages show, by id, in groups of rows.


ABLATIONS = (
    "trace_plus",
    "trace_plus_with_likelihood",
    "trace_plus_without_local_entropy",
    "trace_plus_without_local_surprisal",
    "trace_plus_without_slope",
    "trace_plus_without_length",
)
ROWS = {
    "bridge": (("trace_uncalibrated", "trace", "learned_dml", "trace_plus"),),
    "ablation": (ABLATIONS, ("entropy_local_only", "likelihood_local_only")),
    "operator_ablation": (("operator_d", "operator_m", "operator_l"), ("trace", "learned_dml")),
    "semantic_fusion": (
        ("mars", "mars_with_trace", "token_sar", "token_sar_with_trace"),
        ("trace_plus", "trace_plus_with_mars", "trace_plus_with_token_sar"),
    ),
    "broader_uq": (
        ("mars", "token_sar", "lars", "p_true", "verbalized", "internal_probe"),
        ("semantic_entropy", "selfcheckgpt"),
        ("mean_token_entropy", "ces", "entropy_sentinel", "trace_profile", "length_alone"),
        ("trace", "trace_plus"),
    ),
}
# Rows that the paper's table lacks.
ADDED = {
    "broader_uq": {*ROWS["broader_uq"][1], *ROWS["broader_uq"][2]},
    "protocol_comparison": {
        "p_true",
        "verbalized",
        "lars",
        "internal_probe",
        "entropy_sentinel",
        "trace_profile",
    },
}
SHORT = {"seq_logp": "SeqLogP", "windowed_entropy": "WinEnt"}
LOCALIZED = SHORT | {"windowed_entropy": "WindowEnt"}
DOTTED = {"first_token_prob": "First-Token Prob."}
# The paper's names of estimators, by table, where they differ from the usual; \u2003 is an indent.
PRINTED = {
    "bridge": {"trace": "TRACE + scalar calib.", "learned_dml": "Learned (D,M,L)"},
    "operator_ablation": {"trace": "TRACE (D+M+L)", "learned_dml": "Learned (D,M,L)"},
    "ablation": {
        "trace_plus_with_likelihood": "\u2003+ seq. likelihood",
        "trace_plus_without_local_entropy": "\u2003w/o local entropy",
        "trace_plus_without_local_surprisal": "\u2003w/o local surprisal",
        "trace_plus_without_slope": "\u2003w/o trajectory slope",
        "trace_plus_without_length": "\u2003w/o length",
    },
    "calibration_size": SHORT,
    "reliability_selective": SHORT,
    "length_stratified": SHORT,
    "localized_global_errors": LOCALIZED,
    "localized_error_subtypes": LOCALIZED,
    "cross_model_best_estimators": DOTTED,
    "cross_model_task_details": DOTTED,
}


def shown(table: str) -> set[str]:
    """The estimators that a table shows where the run has them."""
    return {estimator for group in ROWS[table] for estimator in group}


# The report's pages: which results each shows, in which order and under which title.


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
