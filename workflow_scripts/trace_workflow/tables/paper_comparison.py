"""A table of this run beside the paper's: paper, ours, difference, and whether it is large.

Our value is a mean over random calibration/evaluation splits of the same answers, with the s.d. of
single splits. A difference exceeds the split-to-split spread if it is larger than two s.d. (which
hold nearly all single splits) plus half a unit of the paper's last printed digit. As the mean over
all splits varies less than single splits, a difference beyond the spread is not due to the splits.
A difference within it is no evidence of a reproduction: the splits overlap, and say nothing about
other questions, prompts or model revisions. Without an s.d. in our table there is no verdict. A
table with means over other draws names them in its column `sd_over`; its verdicts refer to them.
"""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from trace_workflow.config.paper import Published
from trace_workflow.tables.table import MINUS, Column, Table, format_number
from trace_workflow.tables.wording import count, join_names

CsvRow = Mapping[str, str]  # a line of a table's CSV: text by column, "" where undefined
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
VERDICT_NOTE = (
    f"Spread: {SDS} s.d. of our value over the {{over}}, plus half a unit of the paper's last "
    "digit. A difference that exceeds it is not explained by the choice of {over}; one that does "
    "not is no evidence of agreement, as all {over} share the same answers. – "
    "No s.d. over {over}, hence no verdict, or a value that is a name or undefined."
)


def compare_with_paper(name: str, rows: Sequence[CsvRow], published: Sequence[Published]) -> Table:
    """The comparison of the table `name`, whose CSV has these rows.

    A published value is compared with the row that meets all its conditions; a note counts the
    values without such a row or without their column, and lists what is missing.
    """
    by_row: dict[int, list[Published]] = {}
    missing = []
    for value in published:
        index = _matching_row(name, value, rows)
        if index is None or value.column not in rows[index]:
            missing.append(value)
        else:
            by_row.setdefault(index, []).append(value)
    pairs = [(value, rows[index]) for index in sorted(by_row) for value in by_row[index]]
    titles = {value.row: _title(value, row) for value, row in pairs}
    compared = [compare_value(*pair) for pair in pairs]
    over = rows[0].get("sd_over", "splits") if rows else "splits"
    return Table(
        name=f"{name}_vs_paper",
        title=f"Beside the paper: {name.replace('_', ' ')}",
        caption=_caption(compared, over),
        frame=pl.DataFrame(compared, schema=COMPARED),
        columns=_columns([value.note for value, _ in pairs]),
        section=pl.col("row"),
        titles=titles,
        emphasis="Bold: exceeds the spread.",
        notes=(
            *([VERDICT_NOTE.format(over=over)] if compared else []),
            *_explain_missing(missing, rows, len(published)),
            *_list_notes(titles, [value for value, _ in pairs]),
        ),
    )


def compare_value(published: Published, row: CsvRow) -> dict[str, str | float | None]:
    """The columns COMPARED of a value, with the verdict; see the module's docstring."""
    paper, ours = (_parse(text) for text in (published.value, row[published.column]))
    sd = _parse(row.get(f"{published.column}_sd", ""))
    compared = dict.fromkeys(COMPARED) | {
        "row": published.row,
        "column": published.column,
        "paper_printed": published.value,
        "paper": paper if isinstance(paper, float) else None,
        "ours" if isinstance(ours, float) else "ours_name": ours,
    }
    if not (isinstance(paper, float) and isinstance(ours, float)):
        return compared
    compared["difference"] = ours - paper
    if isinstance(sd, float):
        _, point, decimals = published.value.partition(".")
        half_unit = 0.5 * 10 ** -len(decimals) if point else 0.0  # of the last digit; 0 for counts
        spread = SDS * sd + half_unit
        exceeds = ("no", "yes")[abs(ours - paper) > spread]
        compared |= {"ours_sd": sd, "spread": spread, "exceeds": exceeds}
    return compared


def _columns(notes: Sequence[str]) -> tuple[Column, ...]:
    """`notes` are those on each row's published value, empty where there is none."""
    marks = pl.Series([NOTE_MARK * bool(note) for note in notes], dtype=pl.String)
    minus = pl.col("paper_printed").str.replace(r"^-(\d)", f"{MINUS}$1")
    ours = pl.coalesce(_round_as_paper("ours"), "ours_name")
    difference = _round_as_paper("difference", signed=True)
    exceeds = pl.when(pl.col("exceeds") == "yes").then(pl.lit("best"))
    return (
        Column(("column",), "Figure", align="left"),
        Column(("paper_printed",), "Paper", printed=minus, mark=pl.lit(marks)),
        Column(("ours",), "Ours", printed=ours),
        Column(("difference",), "Ours − paper", printed=difference),
        Column(("ours_sd",), "Our s.d.", decimals=DIGITS + 1),
        Column(("spread",), "Spread", decimals=DIGITS + 1),
        Column(("exceeds",), "Exceeds spread", emphasis=exceeds),
    )


def _round_as_paper(column: str, signed: bool = False) -> pl.Expr:
    """The column's numbers with as many decimals as the paper prints."""

    def text(row: Mapping) -> str | None:
        value, digits = row.values()
        return None if value is None else format_number(value, digits, signed)

    values = pl.struct(column, DIGITS.alias("digits"))
    return values.map_elements(text, return_dtype=pl.String, skip_nulls=False)


def _matching_row(name: str, published: Published, rows: Sequence[CsvRow]) -> int | None:
    conditions = published.conditions.items()
    matching = [
        index
        for index, row in enumerate(rows)
        if all(row.get(key) == value for key, value in conditions)
    ]
    if len(matching) > 1:
        raise ValueError(
            f"table {name}: {len(matching)} rows meet the conditions {dict(conditions)}"
        )
    return matching[0] if matching else None


def _parse(text: str) -> float | str | None:
    """A number where the text is one, None where it is empty."""
    try:
        return float(text)
    except ValueError:
        return text or None


def _title(published: Published, row: CsvRow) -> str:
    """The row's label where a single id makes the row, else its ids."""
    ids = [value for value in published.ids.values() if value]
    label = row.get("label", "")
    return label if label and len(ids) < 2 else " · ".join(ids)


def _caption(compared: Sequence[Mapping], over: str) -> str:
    if not compared:
        return "This run and the paper's table have no value in common."
    names = [value for value in compared if value["ours_name"] is not None]
    if len(names) == len(compared):
        same = sum(value["paper_printed"] == value["ours_name"] for value in names)
        return f"{count(len(names), 'published name')} beside this run's: {same} are the same."
    verdicts = [value["exceeds"] for value in compared]
    return (
        f"{count(len(compared), 'published value')} beside this run's: "
        f"{verdicts.count('yes')} differ by more than the spread over {over}, "
        f"{verdicts.count('no')} do not, and for {verdicts.count(None)} there is no verdict."
    )


def _explain_missing(
    missing: Sequence[Published], rows: Sequence[CsvRow], total: int
) -> Iterator[str]:
    """A note on the paper's values that this run lacks, by the missing ids and columns."""
    if not missing:
        return
    lacking: dict[str, list[str]] = {}
    for published in missing:
        for key, value in published.conditions.items():
            if not any(row.get(key) == value for row in rows):
                lacking.setdefault(key, []).append(value)
        if rows and published.column not in rows[0]:
            lacking.setdefault("column", []).append(published.column)
    reasons = [f"{key} {', '.join(dict.fromkeys(values))}" for key, values in lacking.items()]
    yield (
        f"Not compared: {len(missing)} of the paper's {count(total, 'value')}, for this "
        f"run has no {'; no '.join(reasons) or 'row that combines their ids'}."
    )


def _list_notes(titles: Mapping[str, str], compared: Sequence[Published]) -> Iterator[str]:
    """The notes on published values, each with the values that it is about."""
    notes: dict[str, list[str]] = {}
    for value in compared:
        if value.note:
            notes.setdefault(value.note, []).append(f"{titles[value.row]} {value.column}")
    for note, names in notes.items():
        yield f"{NOTE_MARK} {join_names(names)}: {note}."
