"""Parts of answers on the page: held once, outlined in their answers, and filtered by the peak."""

import polars as pl
import pytest

from support.explorer_answers import ESTIMATORS, MODELS, TASKS, answers, in_parts
from trace_workflow.analyses.localisation import mixed_answers, pointer_hits
from tracecal.explorer.explorer_contents import contents
from tracecal.explorer.explorer_page import page

NAME = pl.concat_str("model", "task", "example_id", separator="/")
FRAME, PARENTS = in_parts(answers(40))
LABELS = TASKS | {"halves": "Halves"}
DATA = contents(FRAME, ESTIMATORS, MODELS, LABELS, "trial", FRAME.height, parents=PARENTS)
PARTS = FRAME.drop_nulls("part")
TEXT = "document.querySelector('#answer .tokens').textContent"


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    path.write_text(page(DATA), encoding="utf-8")
    return path


def opened(browser, explorer, row):
    browser.open(explorer, f"#answer={row['name'].replace('/', '%2F')}")


def listed(browser):
    """The names of all answers that the filters leave."""
    return browser.ask(
        "unpack().then((data) => { const all = new Answers(data);"
        " return all.chosen(readState(all)).map((at) => all.name[at]); })"
    )


def test_the_tokens_of_parts_are_in_the_page_once():
    columns, places = DATA["answers"], DATA["places"]
    held = [row for row, tokens in enumerate(columns["tokens"]) if tokens is None]
    assert held == sorted(places["row"])
    assert len(held) == PARTS.height + PARENTS.height
    for row, parent, start, end in zip(
        *(places[name] for name in ("row", "parent", "start", "end")), strict=True
    ):
        assert DATA["parents"]["tokens"][parent][start:end] == FRAME["tokens"][row].to_list()


def test_the_page_gives_every_row_its_own_tokens(browser, explorer):
    browser.open(explorer)
    found = browser.ask("unpack().then((data) => new Answers(data).columns)")
    assert found["tokens"] == FRAME["tokens"].to_list()
    assert found["prompt"] == FRAME["prompt"].to_list()
    flat = [value for values in found["entropy"] for value in values]
    assert flat == pytest.approx(FRAME["entropy"].explode().to_list(), abs=1e-4)


def expected(model):
    """Whether the peak window points at a wrong part, by the mixed answer of a model."""
    own = PARTS.filter(model=model)
    traces = PARENTS.filter(model=model).select("example_id", "surprisal", "entropy")
    mixed = mixed_answers(own, traces)
    splits = {"parent_id": pl.String, "part": pl.String, "split": pl.Int64, "rate": pl.Float64}
    hits = pointer_hits(mixed, pl.DataFrame(schema=splits))["window"]
    return {f"{model}/{one}": bool(hit) for one, hit in zip(mixed["parent_id"], hits, strict=True)}


def test_answers_whose_peak_is_in_a_wrong_part_are_those_of_the_table(browser, explorer):
    known = {name: hit for model in MODELS for name, hit in expected(model).items()}
    assert 10 < sum(known.values()) < len(known) - 10
    for outcome, hit in (("peak-wrong", True), ("peak-elsewhere", False)):
        wanted = sorted(name for name, found in known.items() if found is hit)
        browser.open(explorer, f"#task=halves&outcome={outcome}")
        # A part stands for its answer, one for each.
        rows = [name.rsplit("/", 1)[0].replace("/halves/", "/") for name in listed(browser)]
        assert sorted(rows) == wanted
        count = browser.ask("document.getElementById('count').textContent")
        assert count == f"{len(wanted)} answers of {len(known)} with right and wrong parts"
        browser.open(explorer, f"#task=sums&outcome={outcome}")
        assert sorted(name.replace("/sums/", "/") for name in listed(browser)) == wanted


def test_a_part_is_outlined_in_its_answer_with_its_verdict_and_confidence(browser, explorer):
    row = PARTS.with_columns(name=NAME).filter(correct=False).row(0, named=True)
    whole = PARENTS.row(
        by_predicate=(pl.col("example_id") == row["parent_id"]) & (pl.col("model") == row["model"]),
        named=True,
    )
    opened(browser, explorer, row)
    assert browser.ask(TEXT) == "".join(whole["tokens"])
    own = "document.querySelector('#answer .tokens .part.own')"
    assert browser.ask(f"{own}.dataset.known") == f"✗\u00a0{row['probability.trace_plus']:.3f}"
    assert browser.ask(f"getComputedStyle({own}).borderBottomStyle") == "dashed"
    doubt = browser.ask(f"parseFloat({own}.style.getPropertyValue('--doubt'))")
    assert doubt == pytest.approx(100 * (1 - row["probability.trace_plus"]), abs=0.1)
    assert browser.ask("document.querySelector('#answer h2').innerText").startswith(row["part"])
    table = browser.ask("document.querySelector('#parts table').innerText")
    both = PARTS.filter(parent_id=row["parent_id"], model=row["model"])
    for part in both.to_dicts():
        assert part["part"] in table and f"{part['probability.trace_plus']:.3f}" in table
    # The whole answer shows the same, with none of them chosen.
    opened(browser, explorer, {"name": f"{row['model']}/sums/{row['parent_id']}"})
    assert browser.ask(TEXT) == "".join(whole["tokens"])
    assert browser.ask("document.querySelectorAll('#answer .tokens .part').length") == 2
    assert not browser.ask(f"{own} && true")
    assert not browser.complaints


def test_a_token_of_two_parts_stands_in_the_first_and_is_told_of(browser, explorer):
    neighbours = PARTS.with_columns(
        name=NAME, before=pl.col("end").shift().over("model", "parent_id")
    )
    row = neighbours.filter(pl.col("before") > pl.col("start")).row(0, named=True)
    opened(browser, explorer, row)
    texts = browser.ask(
        "[...document.querySelectorAll('#answer .tokens .part')].map((one) => one.textContent)"
    )
    tokens = PARENTS.filter(example_id=row["parent_id"], model=row["model"])["tokens"][0]
    assert "".join(tokens[row["before"] : row["end"]]) == "".join(texts[1:])
    said = browser.ask("document.querySelector('#parts table').innerText")
    assert said.count("shares a token") == 2


def test_the_same_question_elsewhere_is_the_same_part(browser, explorer):
    row = PARTS.with_columns(name=NAME).row(0, named=True)
    opened(browser, explorer, row)
    links = browser.ask(
        "[...document.querySelectorAll('#elsewhere a')].map((one) => decodeURIComponent(one.hash))"
    )
    assert links and all(link.endswith(f"/{row['part']}") for link in links)


def test_the_page_opens_on_whole_answers_and_trusts_none_with_a_wrong_part(browser, explorer):
    browser.open(explorer)
    names = browser.ask(
        "[...document.querySelectorAll('.card a')].map((one) =>"
        " new URLSearchParams(one.hash.slice(1)).get('answer'))"
    )
    p, own = (
        pl.col("probability.trace_plus"),
        FRAME.filter(model="tiny-a", task="sums").sort("probability.trace_plus"),
    )
    wrong = PARTS.filter(~pl.col("correct"), model="tiny-a")["parent_id"]
    caught = own.filter(~pl.col("correct"), p < 0.5)
    right = own.filter(pl.col("correct"), p >= 0.5)
    trusted = right.filter(~pl.col("example_id").is_in(wrong.implode()))
    assert trusted["example_id"][-1] != right["example_id"][-1], "the example shows the difference"
    wanted = caught["example_id"][0], trusted["example_id"][-1]
    assert names == [f"tiny-a/sums/{one}" for one in wanted]


def test_exported_parts_have_their_name_and_own_tokens(browser, explorer):
    row = PARTS.with_columns(name=NAME).row(0, named=True)
    browser.open(explorer)
    made = browser.ask(
        "unpack().then((data) => { const all = new Answers(data);"
        f" return asObject(all, all.byName.get({row['name']!r})); }})"
    )
    assert (made["part"], made["tokens"]) == (row["part"], row["tokens"])
    assert not {"parents", "places"} & {*made}
