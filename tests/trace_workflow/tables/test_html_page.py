"""Tables as a reader has them: in a browser, on a small screen."""

from pathlib import Path

import polars as pl
import pytest

from support.chromium import started
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.table import Column, Table

pytestmark = pytest.mark.pages


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "table.html").write_text(render_html(wide()), encoding="utf-8")
    with started(folder / "profile", width=500, height=700) as phone:
        phone.open(Path(folder / "table.html"))
        yield phone


def wide():
    names = [f"c{place}" for place in range(16)]
    columns = [
        Column((name,), f"Value {name}", "First" if place < 8 else "Added", added=place >= 8)
        for place, name in enumerate(names)
    ]
    frame = pl.DataFrame({name: [0.5] * 80 for name in names} | {"label": ["A long name"] * 80})
    return Table(
        frame, (Column(("label",), "Method", align="left"), *columns),
        section=pl.lit("s"), titles={"s": "A section"}, name="w", title="T",
    )  # fmt: skip


SEEN = "[...document.querySelectorAll('table')].filter((one) => one.offsetWidth).map((one) => one.rows[1].cells.length)"


def test_added_columns_stand_behind_a_switch(page):
    assert page.ask(SEEN) == [8]
    page.ask("document.getElementById('further').click()")
    assert page.ask(SEEN) == [16]
    page.ask("document.getElementById('further').click()")
    plain = Table(pl.DataFrame({"a": [1]}), (Column(("a",), added=True),), name="p", title="T")
    assert "further columns" not in render_html(plain)


def test_headings_stay_in_sight_when_the_table_is_scrolled(page):
    page.ask(
        "Object.assign(document.querySelector('.scroll'), { scrollLeft: 120, scrollTop: 400 })"
    )
    box = "document.querySelector('.scroll').getBoundingClientRect()"
    page.wait_for("document.querySelector('.scroll').scrollTop > 0")
    for part, side in (
        ("thead", "top"),
        ("tbody tr:last-child th[scope=row]", "left"),
    ):
        place = f"document.querySelector('.narrow {part}').getBoundingClientRect().{side}"
        assert abs(page.ask(f"{place} - {box}.{side}")) < 3, part
    group = "document.querySelector('.narrow thead th.span b').getBoundingClientRect()"
    assert page.ask(f"{group}.left >= {box}.left && {group}.right <= {box}.right")
    title = "document.querySelector('.narrow th.title span').getBoundingClientRect()"
    assert page.ask(f"{title}.left >= {box}.left")
    assert page.ask("document.documentElement.scrollWidth <= innerWidth")
