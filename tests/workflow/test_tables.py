"""The tables of a finished run, as an author takes them into a paper."""

import pytest

from support import citations
from support.typeset import SETUPS, typeset

pytestmark = pytest.mark.runs


@pytest.mark.parametrize("setup", SETUPS)
def test_all_tables_make_one_document_with_its_bibliography(finished, setup, tmp_path):
    folder = finished.root / "results/smoke/tables"
    tables = sorted(folder.glob("*.tex"))
    assert "risk_coverage" in {path.stem for path in tables}
    assert typeset(tables, folder / "references.bib", setup, tmp_path) == []


def test_the_bibliography_beside_the_tables_holds_all_they_cite(finished):
    folder = finished.root / "results/smoke/tables"
    known = set(citations.keys((folder / "references.bib").read_text(encoding="utf-8")))
    cited = set().union(
        *(citations.cited(path.read_text(encoding="utf-8")) for path in folder.glob("*.tex"))
    )
    assert cited and cited <= known
