"""Tables that benchmarks write into pages."""

import re
from pathlib import Path

from tracecal.errors import InputError
from tracecal.io.regular_files import write_text


def replace_table(page: Path, name: str, lines: list[str]) -> None:
    """Write `lines` between the marks of the table `name` in a page."""
    text = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: written by `make bench` -->\n", f"<!-- end of {name} -->\n"
    table = "".join(f"{line}\n" for line in lines)
    pattern = f"({re.escape(begin)}).*?({re.escape(end)})"
    written, n = re.subn(
        pattern, lambda marks: f"{marks[1]}\n{table}\n{marks[2]}", text, flags=re.S
    )
    if n != 1:
        raise InputError(f"{page.name} has {n} places for {name!r}; write {begin.strip()} once.")
    write_text(written, page)
