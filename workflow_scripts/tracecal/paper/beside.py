"""A table of this run beside the paper's: paper, ours, difference, and whether it is large.

The verdict. Our value is a mean over random calibration/evaluation splits of the same answers, and
its s.d. over them says how far one split lies from another. A difference exceeds the
split-to-split spread when it is larger than two such s.d. (within which nearly all single splits
lie) plus half a unit of the paper's last printed digit. The mean over all splits moves less than
one split does, so what exceeds this is not due to the splits. What stays within it is not thereby
reproduced: the splits overlap, and say nothing about other questions, prompts or model revisions.
Without an s.d. over splits in our table there is no verdict. A table whose values are means over
draws of another kind names it in its column `sd_over`, and the verdict is one about those.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from tracecal.paper.published import Published
from tracecal.tables.words import count, listed
from tracecal.writers.table import MINUS, Column, Table, Value, number

Ours = Mapping[str, str]  # a line of a table's CSV: text by column, "" where undefined
SDS = 2
NOTED = "†"

# Digits behind the point of the paper's number.
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
    "digit; a difference exceeds it where it is larger. What exceeds it is not due to the choice "
    "of {over}; what does not is no proof of agreement, as all {over} are of the same answers. – "
    "No s.d. over {over}, hence no verdict, or a value that is a name or undefined."
)


class Comparison(NamedTuple):
    """A published value, ours, and how far they lie apart."""

    published: Published
    ours: Value
    difference: float | None
    sd: float | None
    spread: float | None
    exceeds: bool | None


def side_by_side(name: str, ours: Sequence[Ours], published: Sequence[Published]) -> Table:
    """The comparison of the table `name`, whose CSV has the rows `ours`.

    A published value is compared with the row that meets all its conditions; values without such
    a row or without their column are counted, and the note says what is not there.
    """
    found: dict[int, list[Comparison]] = {}
    missing = []
    for value in published:
        index = _matching(name, value, ours)
        if index is None or value.column not in ours[index]:
            missing.append(value)
        else:
            found.setdefault(index, []).append(compare(value, ours[index]))
    rows = [(ours[index], value) for index in sorted(found) for value in found[index]]
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
    """`notes` holds what is known of each row's published value, empty where nothing is."""
    noted = pl.Series([NOTED * bool(note) for note in notes], dtype=pl.String)
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
    """The column's numbers, to the digits that the paper prints; counts are whole."""

    def text(row: Mapping) -> str | None:
        value, digits = row.values()
        return None if value is None else number(value, digits, signed)

    both = pl.struct(column, DIGITS.alias("digits"))
    return both.map_elements(text, return_dtype=pl.String, skip_nulls=False)


def compare(published: Published, ours: Ours) -> Comparison:
    """The verdict on one value; see the module's docstring."""
    paper, value = (_value(text) for text in (published.value, ours[published.column]))
    sd = _value(ours.get(f"{published.column}_sd", ""))
    if not (_numeric(paper) and _numeric(value)):
        return Comparison(published, value, None, None, None, None)
    difference = value - paper
    if not _numeric(sd):
        return Comparison(published, value, difference, None, None, None)
    spread = SDS * sd + _half_unit(published.value)
    return Comparison(published, value, difference, sd, spread, abs(difference) > spread)


def _matching(name: str, published: Published, ours: Sequence[Ours]) -> int | None:
    wanted = published.conditions.items()
    rows = [i for i, row in enumerate(ours) if all(row.get(key) == value for key, value in wanted)]
    if len(rows) > 1:
        raise ValueError(f"table {name}: {len(rows)} rows meet the conditions {dict(wanted)}")
    return rows[0] if rows else None


def _value(text: str) -> Value:
    """A number where the text is one, null where it is empty."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None


def _numeric(value: Value) -> bool:
    return isinstance(value, int | float)


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _half_unit(text: str) -> float:
    """Half a unit of the last printed digit; nothing for counts."""
    return 0.5 * 10 ** -_decimals(text) if "." in text else 0.0


def _row(comparison: Comparison) -> tuple:
    verdict = None if comparison.exceeds is None else ("no", "yes")[comparison.exceeds]
    paper = _value(comparison.published.value)
    numbers = [float(value) if _numeric(value) else None for value in (paper, comparison.ours)]
    name = None if _numeric(comparison.ours) else comparison.ours
    own = (
        comparison.published.row,
        comparison.published.column,
        comparison.published.value,
        *numbers,
        name,
    )
    return (*own, comparison.difference, comparison.sd, comparison.spread, verdict)


def _title(ours: Ours, comparison: Comparison) -> str:
    """The row's own label where one id makes the row, else its ids."""
    ids = [value for value in comparison.published.ids.values() if value]
    label = ours.get("label", "")
    return label if label and len(ids) < 2 else " · ".join(ids)


def _caption(compared: Sequence[Comparison], over: str) -> str:
    if not compared:
        return "This run has nothing in common with the paper's table, so no row is listed."
    names = [one for one in compared if isinstance(one.ours, str)]
    same = [_value(one.published.value) == one.ours for one in names]
    if len(same) == len(compared):
        return f"{count(len(same), 'published name')} beside this run's: {sum(same)} are the same."
    verdicts = [comparison.exceeds for comparison in compared]
    return (
        f"{count(len(compared), 'published value')} beside this run's: "
        f"{verdicts.count(True)} differ by more than the spread over {over}, "
        f"{verdicts.count(False)} do not, and for {verdicts.count(None)} there is no verdict."
    )


def _absent(missing: Sequence[Published], ours: Sequence[Ours], total: int) -> Iterator[str]:
    """What the paper has and this run has not, by the ids and columns that are not there."""
    if not missing:
        return
    wanted: dict[str, list[str]] = {}
    for lacking in missing:
        for key, value in lacking.conditions.items():
            if not any(row.get(key) == value for row in ours):
                wanted.setdefault(key, []).append(value)
        if ours and lacking.column not in ours[0]:
            wanted.setdefault("column", []).append(lacking.column)
    reasons = [f"{key} {', '.join(dict.fromkeys(values))}" for key, values in wanted.items()]
    yield (
        f"Not compared: {len(missing)} of the paper's {count(total, 'value')}, for this "
        f"run has no {'; no '.join(reasons) or 'row that combines their ids'}."
    )


def _footnotes(titles: Mapping[str, str], compared: Sequence[Comparison]) -> Iterator[str]:
    """What is known about published values that are listed."""
    notes: dict[str, list[str]] = {}
    for comparison in compared:
        if comparison.published.note:
            name = f"{titles[comparison.published.row]} {comparison.published.column}"
            notes.setdefault(comparison.published.note, []).append(name)
    for note, names in notes.items():
        yield f"{NOTED} {listed(names)}: {note}."
