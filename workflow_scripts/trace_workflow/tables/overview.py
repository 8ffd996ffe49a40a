"""The overview of a run's tables, tables/README.md: a line a table, and how columns are named."""

from collections.abc import Mapping

OPENING = """\
# The tables of this run

Each table is there as `.tex`, `.html` and `.csv`; its page has its caption and notes. A CSV holds
all numbers at full precision; an empty cell is undefined.

| table | rows | what it shows |
|---|---|---|
"""
CLOSING = """
`<table>_vs_paper.csv` has the paper's numbers beside ours. Of columns, `<task>_<metric>` is a mean
over splits and `average_<metric>` one over tasks, too; `<column>_sd` is its s.d. over splits,
`<column>_low` and `<column>_high` are the ends of its interval, `<column>_undefined_splits` counts
the splits that it leaves out, and `<column>_id` is an estimator's id. `picked` is the baseline
selected on the calibration data, `named` the prespecified one, `best_baseline` the best in
hindsight. An `improvement` is positive where the estimator is better.
"""


def overview(titles: Mapping[str, str], n_rows: Mapping[str, int]) -> str:
    """The page on tables with `titles` and numbers of rows by name, as Markdown.

    >>> overview({"costs": "Costs"}, {"costs": 3}).splitlines()[7]
    '| [`costs`](costs.html) | 3 | Costs |'
    """
    lines = [f"| [`{name}`]({name}.html) | {n_rows[name]} | {titles[name]} |\n" for name in n_rows]
    return f"{OPENING}{''.join(lines)}{CLOSING}"
