"""A table of this run beside the paper's: paper, ours, difference, and whether it is large.

The verdict. Our value is a mean over random calibration/evaluation splits of the same answers, and
its s.d. is that of single splits. A difference exceeds the split-to-split spread when it is larger
than two such s.d. (within which nearly all single splits lie) plus half a unit of the paper's last
printed digit. The mean over all splits varies less than single splits do, so a difference that
exceeds this is not due to the splits. One within it is not evidence of a reproduction: the splits
overlap, and say nothing about other questions, prompts or model revisions. Without an s.d. in our
table there is no verdict. A table whose values are means over other draws names them in its column
`sd_over`, and its verdicts are about those.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from trace_workflow.config.paper import Published
from trace_workflow.tables.captions import count, listed
from trace_workflow.tables.table import MINUS, Column, Table, number

Ours = Mapping[str, str]  # a line of a table's CSV: text by column, "" where undefined
SDS = 2
NOTE_MARK = "†"

# Decimals of the paper's number.
DIGITS = pl.col("paper_printed").str.extract(r"^[+-]?\d*\.(\d+)$").str.len_chars().fill_null(0)
COMPARED = {
    "row": pl.String,
    "column": pl.String,
    "paper_printed": pl.String,
    "paper": pl.Float64,
    "ours": pl.Float64,
    "ours_name": pl.String,
    "difference": pl.Float64,
    "ours_sd": pl.Float64,
    "spread": pl.Float64,
    "exceeds": pl.String,
}
VERDICT = (
    f"Spread: {SDS} s.d. of our value over the {{over}}, plus half a unit of the paper's last "
    "digit. A difference that exceeds it is not explained by the choice of {over}; one that does "
    "not is no evidence of agreement, as all {over} share the same answers. – "
    "No s.d. over {over}, hence no verdict, or a value that is a name or undefined."
)


class Comparison(NamedTuple):
    """A published value, ours, and how far they lie apart."""

    published: Published
    ours: float | str | None
    difference: float | None = None
    sd: float | None = None
    spread: float | None = None
    exceeds: bool | None = None


def side_by_side(name: str, ours: Sequence[Ours], published: Sequence[Published]) -> Table:
    """The comparison of the table `name`, whose CSV has the rows `ours`.

    A published value is compared with the row that meets all its conditions; a note counts the
    values without such a row or without their column, and lists what is missing.
    """
    by_row: dict[int, list[Comparison]] = {}
    missing = []
    for value in published:
        index = _matching(name, value, ours)
        if index is None or value.column not in ours[index]:
            missing.append(value)
        else:
            by_row.setdefault(index, []).append(compare(value, ours[index]))
    rows = [(ours[index], value) for index in sorted(by_row) for value in by_row[index]]
    titles = {value.published.row: _title(own, value) for own, value in rows}
    compared = [value for _, value in rows]
    over = ours[0].get("sd_over", "splits") if ours else "splits"
    return Table(
        name=f"{name}_vs_paper",
        title=f"Beside the paper: {name.replace('_', ' ')}",
        caption=_caption(compared, over),
        frame=pl.DataFrame(map(_row, compared), schema=COMPARED, orient="row"),
        columns=_columns([value.published.note for value in compared]),
        section=pl.col("row"),
        titles=titles,
        emphasis="Bold: exceeds the spread.",
        notes=(
            *([VERDICT.format(over=over)] if compared else []),
            *_absent(missing, ours, len(published)),
            *_footnotes(titles, compared),
        ),
    )


def _columns(notes: Sequence[str]) -> tuple[Column, ...]:
    """`notes` are those on each row's published value, empty where there is none."""
    noted = pl.Series([NOTE_MARK * bool(note) for note in notes], dtype=pl.String)
    minus = pl.col("paper_printed").str.replace(r"^-(\d)", f"{MINUS}$1")
    ours = pl.coalesce(_rounded("ours"), "ours_name")
    return (
        Column(("column",), "Figure", align="left"),
        Column(("paper_printed",), "Paper", printed=minus, mark=pl.lit(noted)),
        Column(("ours",), "Ours", printed=ours),
        Column(("difference",), "Ours − paper", printed=_rounded("difference", signed=True)),
        Column(("ours_sd",), "Our s.d.", decimals=DIGITS + 1),
        Column(("spread",), "Spread", decimals=DIGITS + 1),
        Column(
            ("exceeds",),
            "Exceeds spread",
            emphasis=pl.when(pl.col("exceeds") == "yes").then(pl.lit("best")),
        ),
    )


def _rounded(column: str, signed: bool = False) -> pl.Expr:
    """The column's numbers with as many decimals as the paper prints."""

    def text(row: Mapping) -> str | None:
        value, digits = row.values()
        return None if value is None else number(value, digits, signed)

    both = pl.struct(column, DIGITS.alias("digits"))
    return both.map_elements(text, return_dtype=pl.String, skip_nulls=False)


def compare(published: Published, ours: Ours) -> Comparison:
    """The verdict on one value; see the module's docstring."""
    paper, value = (_value(text) for text in (published.value, ours[published.column]))
    sd = _value(ours.get(f"{published.column}_sd", ""))
    if not (isinstance(paper, float) and isinstance(value, float)):
        return Comparison(published, value)
    difference = value - paper
    if not isinstance(sd, float):
        return Comparison(published, value, difference)
    spread = SDS * sd + _half_unit(published.value)
    return Comparison(published, value, difference, sd, spread, abs(difference) > spread)


def _matching(name: str, published: Published, ours: Sequence[Ours]) -> int | None:
    wanted = published.conditions.items()
    rows = [i for i, row in enumerate(ours) if all(row.get(key) == value for key, value in wanted)]
    if len(rows) > 1:
        raise ValueError(f"table {name}: {len(rows)} rows meet the conditions {dict(wanted)}")
    return rows[0] if rows else None


def _value(text: str) -> float | str | None:
    """A number where the text is one, null where it is empty."""
    try:
        return float(text)
    except ValueError:
        return text or None


def _half_unit(text: str) -> float:
    """Half a unit of the last printed digit; 0 for counts."""
    _, point, decimals = text.partition(".")
    return 0.5 * 10 ** -len(decimals) if point else 0.0


def _row(comparison: Comparison) -> tuple:
    """The values of the columns COMPARED."""
    published, ours, *measured, exceeds = comparison
    verdict = None if exceeds is None else ("no", "yes")[exceeds]
    paper = _value(published.value)
    numbers = [value if isinstance(value, float) else None for value in (paper, ours)]
    name = None if isinstance(ours, float) else ours
    return (published.row, published.column, published.value, *numbers, name, *measured, verdict)


def _title(ours: Ours, comparison: Comparison) -> str:
    """The row's own label where one id makes the row, else its ids."""
    ids = [value for value in comparison.published.ids.values() if value]
    label = ours.get("label", "")
    return label if label and len(ids) < 2 else " · ".join(ids)


def _caption(compared: Sequence[Comparison], over: str) -> str:
    if not compared:
        return "This run and the paper's table have no value in common."
    names = [value for value in compared if isinstance(value.ours, str)]
    same = [value.published.value == value.ours for value in names]
    if len(same) == len(compared):
        return f"{count(len(same), 'published name')} beside this run's: {sum(same)} are the same."
    verdicts = [comparison.exceeds for comparison in compared]
    return (
        f"{count(len(compared), 'published value')} beside this run's: "
        f"{verdicts.count(True)} differ by more than the spread over {over}, "
        f"{verdicts.count(False)} do not, and for {verdicts.count(None)} there is no verdict."
    )


def _absent(missing: Sequence[Published], ours: Sequence[Ours], total: int) -> Iterator[str]:
    """A note on the paper's values that this run lacks, by the missing ids and columns."""
    if not missing:
        return
    wanted: dict[str, list[str]] = {}
    for published in missing:
        for key, value in published.conditions.items():
            if not any(row.get(key) == value for row in ours):
                wanted.setdefault(key, []).append(value)
        if ours and published.column not in ours[0]:
            wanted.setdefault("column", []).append(published.column)
    reasons = [f"{key} {', '.join(dict.fromkeys(values))}" for key, values in wanted.items()]
    yield (
        f"Not compared: {len(missing)} of the paper's {count(total, 'value')}, for this "
        f"run has no {'; no '.join(reasons) or 'row that combines their ids'}."
    )


def _footnotes(titles: Mapping[str, str], compared: Sequence[Comparison]) -> Iterator[str]:
    """The notes on the published values that are listed."""
    notes: dict[str, list[str]] = {}
    for comparison in compared:
        if comparison.published.note:
            name = f"{titles[comparison.published.row]} {comparison.published.column}"
            notes.setdefault(comparison.published.note, []).append(name)
    for note, names in notes.items():
        yield f"{NOTE_MARK} {listed(names)}: {note}."
