"""`snakemake --report` gives pages by question, with a caption for each result."""

import json
import re
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def report(finished, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.zip"
    finished.snakemake("--report", str(path))
    with ZipFile(path) as pages:
        yield pages


@pytest.fixture(scope="module")
def told(report):
    """What the page holds: the results and their categories, and the text on the landing page."""
    page = report.read("report/report.html").decode()
    return {
        name: json.loads(re.search(rf"<script[^>]*>\s*var {name} = (.*?);\n", page).group(1))
        for name in ("results", "categories", "workflow_desc")
    }


def test_pages_are_questions_in_the_order_of_the_contents(told):
    places = [int(page.split()[0]) for page in sorted(told["categories"])]
    assert places == sorted(places)
    assert all(re.fullmatch(r"\d (.+\?|Beside the paper)", page) for page in told["categories"])
    shown = [
        path for page in told["categories"].values() for part in page.values() for path in part
    ]
    assert sorted(shown) == sorted(told["results"])


def test_every_result_has_a_label_and_a_caption(told):
    for path, result in told["results"].items():
        assert result["labels"]["result"], path
        assert len(re.sub("<[^>]+>|\\s", "", result["caption"])) > 20, path
        assert "problematic" not in result["caption"], path


def test_the_landing_page_names_the_run_and_links_to_every_page(told):
    text = told["workflow_desc"]
    assert "smoke" in text and "Demo-Small" in text and "arithmetic" in text
    assert text.count("app.showCategory") == len(told["categories"])
    assert "app.showResultInfo('results/smoke/explorer.html')" in text
    assert "problematic" not in text and "system-message" not in text


def test_the_explorer_lies_in_the_report_as_it_is(report, finished):
    inside = next(name for name in report.namelist() if name.endswith("/explorer.html"))
    assert report.read(inside) == (finished.root / "results/smoke/explorer.html").read_bytes()
