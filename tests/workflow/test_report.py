"""`snakemake --report` gives pages by question, with a caption for each result."""

import json
import re
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from support.chromium import started

pytestmark = pytest.mark.runs
REPORT = Path(__file__).resolve().parents[2] / "report"


@pytest.fixture(scope="module")
def report(finished, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.zip"
    finished.snakemake("--report", str(path))
    with ZipFile(path) as pages:
        yield pages


@pytest.fixture(scope="module")
def page_data(report):
    """What the page holds: the results and their categories, and the text on the landing page."""
    page = report.read("report/report.html").decode()
    return {
        name: json.loads(re.search(rf"<script[^>]*>\s*var {name} = (.*?);\n", page).group(1))
        for name in ("results", "categories", "workflow_desc")
    }


def test_pages_are_questions_in_the_order_of_the_contents(page_data):
    places = [int(page.split()[0]) for page in sorted(page_data["categories"])]
    assert places == sorted(places)
    assert all(
        re.fullmatch(r"\d (.+\?|Beside the paper)", page) for page in page_data["categories"]
    )
    listed = [
        path for page in page_data["categories"].values() for part in page.values() for path in part
    ]
    assert sorted(listed) == sorted(page_data["results"])


def test_every_table_and_figure_is_shown(page_data, finished):
    folder = finished.root / "results/smoke"
    made = [*folder.glob("tables/*.html"), *folder.glob("figures/*.svg")]
    assert {"main_comparison", "performance_overview"} <= {path.stem for path in made}
    assert {str(path.relative_to(finished.root)) for path in made} <= page_data["results"].keys()


def test_every_result_has_a_label_and_a_caption(page_data):
    for path, result in page_data["results"].items():
        assert result["labels"]["result"], path
        assert len(re.sub("<[^>]+>|\\s", "", result["caption"])) > 20, path
        assert "problematic" not in result["caption"], path


def test_the_landing_page_names_the_run_and_links_to_every_page(page_data):
    text = page_data["workflow_desc"]
    assert "smoke" in text and "Demo-Small" in text and "arithmetic" in text
    assert text.count("app.showCategory") == len(page_data["categories"])
    assert "problematic" not in text and "system-message" not in text


def test_the_landing_page_tells_the_findings(page_data, finished):
    text = re.sub(r"<[^>]+>", "", page_data["workflow_desc"])
    findings = (finished.root / "results/smoke/findings.txt").read_text(encoding="utf-8")
    for sentence in findings.splitlines():
        assert sentence in text
    assert "TRACE+ ties in AUROC" in text or "TRACE+ has a " in text


def test_the_explorer_lies_in_the_report_as_it_is(report, finished):
    inside = next(name for name in report.namelist() if name.endswith("/explorer.html"))
    assert report.read(inside) == (finished.root / "results/smoke/explorer.html").read_bytes()


def test_results_of_a_page_are_in_the_order_of_the_contents(page_data):
    contents = yaml.safe_load((REPORT / "contents.yaml").read_text(encoding="utf-8"))
    wanted = [name for page in contents.values() for name in page]
    for page, parts in page_data["categories"].items():
        if "Beside" in page:
            continue
        listed = sorted(
            (page_data["results"][path]["labels"]["result"], path.split("/")[-1].split(".")[0])
            for part in parts.values()
            for path in part
        )
        names = [name for _, name in listed]
        assert names == sorted(names, key=wanted.index)


@pytest.fixture(scope="module")
def browser(report, tmp_path_factory):
    """The report's landing page on a small screen."""
    folder = tmp_path_factory.mktemp("opened")
    report.extractall(folder)
    with started(folder / "profile", width=1280, height=900) as browser:
        browser.open(folder / "report/report.html")
        browser.wait_for("document.querySelector('.prose')")
        yield browser


def test_it_opens_with_all_of_its_introduction_in_sight(browser):
    box = browser.ask("(({left, top, right, bottom}) => [left, top, right, bottom])"
                      "(document.querySelector('.prose').getBoundingClientRect())")  # fmt: skip
    navigation = browser.ask("document.querySelector('nav').getBoundingClientRect().right")
    width, height = browser.ask("[innerWidth, innerHeight]")
    assert navigation <= box[0] and box[1] >= 0
    assert box[2] <= width and box[3] <= height


def test_its_links_lead_where_they_say(browser):
    link = "[...document.querySelectorAll('.prose a')].find((one) => one.textContent === {!r})"
    page = "2 Where does it win?"
    browser.ask(f"{link.format(page)}.click()")
    browser.wait_for(
        f"[...document.querySelectorAll('nav a')].some((one) => one.text === {page!r})"
    )
    assert "Cross-model comparison, task by task" in browser.ask(
        "document.querySelector('nav').innerText"
    )
    browser.ask(f"{link.format('explorer')}.click()")
    browser.wait_for("document.querySelector('iframe')")
    assert browser.ask("document.querySelector('iframe').src").endswith("/explorer.html")
    assert browser.complaints == []


def test_a_page_shows_how_to_open_its_results_in_place_of_the_findings(browser):
    listed = "document.querySelector('.prose').innerText"
    browser.ask("app.setView({content: 'rulegraph', navbarMode: 'menu'})")
    browser.wait_for("document.querySelector('.prose')")
    assert "cut at the limit" in browser.ask(listed) and "Choose" not in browser.ask(listed)
    browser.ask("app.showCategory('1 Which estimator wins, and by how much?')")
    browser.wait_for(f"{listed}.startsWith('Choose a result')")
    assert "cut at the limit" not in browser.ask(listed)
    assert browser.ask("document.querySelector('#rulegraph').getClientRects().length") == 0


def test_what_a_result_is_said_to_be_holds_no_parameters(browser):
    style = json.dumps((REPORT / "style.css").read_text(encoding="utf-8"))
    browser.ask(f"document.head.append(Object.assign(document.createElement('style'),"
                f"{{textContent: {style}}}))")  # fmt: skip
    browser.ask(
        "app.showResultInfo(Object.keys(results).find((path) => /main_comparison.html/.test(path)))"
    )
    said = "document.querySelector('nav').innerText.toLowerCase()"
    browser.wait_for(f"{said}.includes('snakemake rule')")
    assert "write_table" in browser.ask(said)
    assert "parameters" not in browser.ask(said) and "code=" not in browser.ask(said)
