"""The explorer as a reader has it: in a browser that loads, sorts, filters and is attacked."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from support.chromium import started
from support.explorer_answers import ESTIMATORS, MODELS, TASKS, answers
from tracecal.explorer.explorer_contents import contents
from tracecal.explorer.explorer_page import page
from tracecal.statistics.ranking_metrics import single_auroc as auroc

ANSWERS = answers(16).with_columns(name=pl.concat_str("model", "task", "example_id", separator="/"))
LINK = "document.querySelector('#answer a')"
ALL = "#order=down"  # an address: the page begins with one model and one task without it
ROWS = "[...document.querySelectorAll('.row')]"


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    return written(tmp_path_factory.mktemp("page"), ANSWERS)


def written(folder: Path, frame: pl.DataFrame, main: str | None = None) -> Path:
    path = folder / "explorer.html"
    frame = frame.drop("name", strict=False)
    data = contents(frame, ESTIMATORS, MODELS, TASKS, "trial", frame.height, main)
    path.write_text(page(data), encoding="utf-8")
    return path


def expected(frame=ANSWERS, by="trace_plus", descending=True):
    """The names of answers, most confident first."""
    order = frame.with_row_index().sort(
        pl.col(f"probability.{by}").round_sig_figs(4),
        "index",
        descending=[descending, False],
        nulls_last=True,
    )
    return order["name"].to_list()


def wilson(correct: pl.Series, frame: pl.DataFrame = ANSWERS) -> tuple[float, float]:
    """The Wilson interval of a share, for as many independent answers as the groups are worth."""
    own = frame.select("task", "group_id", residual=correct - correct.mean())
    sums = own.group_by("task", "group_id").agg(pl.col("residual").sum())["residual"]
    n, share = len(correct), correct.mean()
    variance = (sums**2).sum() / n**2 * len(sums) / (len(sums) - 1)
    effective = min(n, share * (1 - share) / variance) if variance else len(sums)
    return proportion_interval(share, effective)


def proportion_interval(share, n, z=1.959964):
    roots = np.roots([1 + z**2 / n, -2 * share - z**2 / n, share**2])
    return float(min(roots)), float(max(roots))


def test_answers_to_one_question_count_as_less_than_independent_ones(browser, explorer):
    browser.open(explorer)
    widths = browser.ask(
        "[1, 10].map((size) => { const members = Array.from({ length: 100 }, (_, at) =>"
        " ({ right: Math.floor(at / size) % 2 === 0, group: Math.floor(at / size) }));"
        " const [low, high] = interval(members, (one) => one.right); return high - low; })"
    )
    low, high = proportion_interval(0.5, 99)
    assert widths[0] == pytest.approx(high - low, abs=1e-3)
    assert widths[1] > 2.5 * widths[0]
    assert browser.ask("interval([{ right: true, group: 1 }], (one) => one.right)")[0] < 0.25


def listed(browser):
    """The names of the answers in the list, by walking down it."""
    browser.ask("document.getElementById('list').focus()")
    browser.press("Home")
    names = [chosen(browser)]
    while True:
        browser.press("ArrowDown")
        if chosen(browser) == names[-1]:
            return names
        names.append(chosen(browser))


def chosen(browser):
    """The name of the answer that is shown, as its own link has it."""
    return browser.ask(f"new URLSearchParams({LINK}.hash.slice(1)).get('answer')")


def text(browser, selector):
    return browser.ask(f"document.querySelector({selector!r}).innerText")


def choose(browser, control, value):
    browser.ask(
        f"{{ const c = document.getElementById({control!r}); c.value = {value!r};"
        " c.dispatchEvent(new Event('input')); }"
    )


def test_all_answers_are_there_most_confident_first(browser, explorer):
    browser.open(explorer, ALL)
    assert listed(browser) == expected()
    assert "All 64 evaluated answers" in text(browser, "#extent")
    right, (low, high) = ANSWERS["correct"].mean(), wilson(ANSWERS["correct"])
    assert text(browser, "#count") == (
        f"64 answers, {100 * right:.0f}\u00a0% correct "
        f"(95\u00a0% interval {100 * low:.0f} to {100 * high:.0f}\u00a0%)"
    )


def test_a_page_of_some_answers_says_of_how_many(browser, tmp_path):
    path = tmp_path / "some.html"
    frame = ANSWERS.drop("name")
    path.write_text(page(contents(frame, ESTIMATORS, MODELS, TASKS, "trial", 12345)))
    browser.open(path)
    assert "64 of the run's 12,345 evaluated answers" in text(browser, "#extent")


@pytest.mark.parametrize("descending", [True, False])
def test_answers_are_sorted_by_another_estimator_with_undefined_ones_last(
    browser, explorer, descending
):
    browser.open(explorer, f"#by=mars&order={'down' if descending else 'up'}")
    names = listed(browser)
    assert names == expected(by="mars", descending=descending)
    undefined = ANSWERS.filter(pl.col("probability.mars").is_null())["name"]
    assert set(names[-len(undefined) :]) == set(undefined)
    assert text(browser, ".row[aria-selected=true] .confidence") == "–"


@pytest.mark.parametrize(
    ("fragment", "wanted"),
    [
        ("model=tiny-b", pl.col("model") == "tiny-b"),
        ("task=towns", pl.col("task") == "towns"),
        ("outcome=correct", pl.col("correct")),
        ("outcome=wrong", ~pl.col("correct")),
        ("outcome=wrong-entity", pl.col("error_kind") == "entity"),
        ("model=tiny-a&task=sums&outcome=wrong", (pl.col("model") == "tiny-a")
            & (pl.col("task") == "sums") & ~pl.col("correct")),
        ("find=qUestion+7+", pl.col("question").str.contains("Question 7 ")),
        ("find=other+12", pl.col("references").list.join(" ").str.contains("other 12")),
        ("find=SEVEN+old", pl.col("prediction").str.contains("seven old")),
        ("model=unknown&outcome=odd&by=none&order=sideways&shade=none", pl.lit(True)),
    ],
)  # fmt: skip
def test_answers_are_filtered(browser, explorer, fragment, wanted):
    subset = ANSWERS.filter(wanted)
    assert subset.height > 0
    browser.open(explorer, f"#{fragment}")
    assert listed(browser) == expected(subset)
    assert text(browser, "#count").startswith(f"{subset.height} answer")


def test_controls_do_what_the_address_does_and_write_it(browser, explorer):
    browser.open(explorer, ALL)
    choose(browser, "model", "tiny-a")
    choose(browser, "by", "seq_logp")
    choose(browser, "order", "up")
    choose(browser, "find", "town")
    browser.wait_for("location.hash.includes('find=town')")
    state = "[location.hash, document.getElementById('count').textContent, document.querySelector('#answer h2').textContent]"
    fragment, count, question = browser.ask(state)
    wanted = ANSWERS.filter(
        (pl.col("model") == "tiny-a")
        & (pl.col("prediction") + pl.col("question")).str.contains("town")
    )
    assert listed(browser) == expected(wanted, "seq_logp", descending=False)
    browser.open(explorer, fragment)
    assert browser.ask(state)[1:] == [count, question]


def confident_errors(threshold):
    return ANSWERS.filter(
        ~pl.col("correct"),
        pl.col("probability.trace_plus").round_sig_figs(4) >= threshold,
    )


CARDS = "[...document.querySelectorAll('.card a')]"


def opening(browser):
    """The names of the answers that the page opens on."""
    return browser.ask(
        f"{CARDS}.map((one) => new URLSearchParams(one.hash.slice(1)).get('answer'))"
    )


@pytest.mark.parametrize("main", MODELS)
def test_the_page_opens_on_a_caught_error_beside_a_trusted_answer(browser, tmp_path, main):
    """Of the main model and the first task, which is all that is listed at first."""
    browser.open(written(tmp_path, ANSWERS, main))
    p, own = pl.col("probability.trace_plus"), ANSWERS.filter(model=main, task=next(iter(TASKS)))
    own = own.sort(p)
    caught = own.filter(~pl.col("correct"), p < 0.5)["name"][0]
    trusted = own.filter(pl.col("correct"), p >= 0.5)["name"][-1]
    assert opening(browser) == [caught, trusted]
    assert "not how often" in text(browser, "#answer")
    assert text(browser, "#count").startswith("16 answers")
    assert f"of {16} answers" in text(browser, "#basis")
    errors = confident_errors(0.5).filter(model=main, task=next(iter(TASKS)))
    browser.ask("document.querySelector('#answer button').click()")
    assert listed(browser) == expected(errors)
    browser.ask("document.getElementById('everything').click()")
    assert listed(browser) == expected()


def test_a_page_without_such_a_pair_opens_on_its_list(browser, tmp_path):
    browser.open(written(tmp_path, ANSWERS.with_columns(correct=True)))
    assert opening(browser) == []
    assert chosen(browser) == expected(ANSWERS.filter(model="tiny-a", task="sums"))[0]


def test_an_error_that_the_main_model_lacks_is_another_models(browser, tmp_path):
    right = (pl.col("model") == "tiny-a") | pl.col("correct")
    browser.open(written(tmp_path, ANSWERS.with_columns(correct=right), "tiny-a"))
    assert [name.split("/")[0] for name in opening(browser)] == ["tiny-b", "tiny-b"]


def test_an_error_that_the_first_task_lacks_is_of_the_next(browser, tmp_path):
    right = (pl.col("task") == "sums") | pl.col("correct")
    browser.open(written(tmp_path, ANSWERS.with_columns(correct=right), "tiny-b"))
    assert [name.split("/")[:2] for name in opening(browser)] == [["tiny-b", "towns"]] * 2


def test_controls_leave_the_page_to_the_answers(browser, explorer):
    browser.resize(1280, 900)
    browser.open(explorer)
    assert browser.ask("document.querySelector('header').offsetHeight") < 250


def test_an_error_as_a_whole_is_explained(browser, tmp_path):
    kind = pl.when(~pl.col("correct")).then(pl.lit("global"))
    browser.open(written(tmp_path, ANSWERS.with_columns(error_kind=kind)), "#outcome=wrong")
    said = text(browser, "#answer .verdict")
    assert said.startswith("✗ Wrong as a whole: it says nothing")


@pytest.mark.parametrize(
    "special", ["<|im_end|>", "</s>", "<｜end▁of▁sentence｜>", "<end_of_turn>"]
)
def test_a_token_that_only_ends_an_answer_is_a_small_mark(browser, tmp_path, special):
    tokens = pl.concat_list(pl.col("tokens").list.slice(0, pl.col("tokens").list.len() - 1),
                            pl.lit([special]))  # fmt: skip
    browser.open(written(tmp_path, ANSWERS.with_columns(tokens)), ALL)
    assert text(browser, "#answer .tokens .special") == "∎"
    assert special in browser.ask("document.querySelector('#answer .special').title")
    assert special not in text(browser, "#answer .tokens")


SAVED = (
    "(async () => { let kept; const make = URL.createObjectURL;"
    " URL.createObjectURL = (blob) => { kept = blob; return make(blob); };"
    " document.getElementById(%r).click(); URL.createObjectURL = make; return kept.text(); })()"
)


def test_the_filtered_list_is_saved_with_notes(browser, explorer):
    browser.open(explorer, "#model=tiny-b&outcome=wrong&by=mars")
    names = listed(browser)
    browser.press("Home")
    browser.ask(
        "{ const note = document.querySelector('.note textarea'); note.value = 'odd, \"really\"';"
        " note.dispatchEvent(new Event('input')); }"
    )
    lines = [json.loads(line) for line in browser.ask(SAVED % "jsonl").splitlines()]
    table = pl.read_csv(browser.ask(SAVED % "csv").encode())
    rows = {row["name"]: row for row in ANSWERS.iter_rows(named=True)}
    assert ["/".join((one["model"], one["task"], one["example_id"])) for one in lines] == names
    assert [one["note"] for one in lines] == ['odd, "really"', *[""] * (len(names) - 1)]
    assert table["note"].fill_null("").to_list() == [one["note"] for one in lines]
    assert table["example_id"].to_list() == [one["example_id"] for one in lines]
    assert lines[0]["tokens"] == rows[names[0]]["tokens"]
    for kind in ("probability", "held_out", "score"):
        own = [rows[name][f"{kind}.mars"] for name in names]
        known = [place for place, value in enumerate(own) if value is not None]
        values = table[f"{kind}.mars"].to_list()
        assert [values[place] for place in known] == pytest.approx(
            [own[p] for p in known], rel=1e-3
        )
        assert [place for place, value in enumerate(values) if value is not None] == known
    assert browser.complaints == []
    browser.open(explorer, "#outcome=noted")
    assert listed(browser) == names[:1]
    browser.ask("localStorage.clear()")


def test_confident_errors_are_wrong_and_above_the_threshold_and_one_key_away(browser, explorer):
    browser.open(explorer, "#order=up")
    pressed = "document.getElementById('confident-errors').getAttribute('aria-pressed')"
    browser.press("e")
    assert listed(browser) == expected(confident_errors(0.5))
    assert browser.ask(pressed) == "true"
    choose(browser, "threshold", "0.8")
    assert 0 < confident_errors(0.8).height < confident_errors(0.5).height
    assert listed(browser) == expected(confident_errors(0.8))
    browser.ask("document.getElementById('confident-errors').click()")
    assert listed(browser) == expected()
    assert browser.ask(pressed) == "false"


def test_the_overview_counts_what_the_filters_leave(browser, explorer):
    browser.open(explorer, "#model=tiny-a&by=mars&threshold=0.6&outcome=wrong")
    shown = ANSWERS.filter(pl.col("model") == "tiny-a").drop_nulls("held_out.mars")
    kept = shown.filter(pl.col("held_out.mars").round_sig_figs(4) >= 0.6)
    wrong = 100 * (1 - kept["correct"].mean())
    low, high = wilson(~kept["correct"], kept)
    assert text(browser, "#kept").startswith(
        f"At or above it: {kept.height} answers ({100 * kept.height / shown.height:.0f} %), "
        f"{wrong:.1f}\u00a0% wrong (95\u00a0% interval {100 * low:.0f} to {100 * high:.0f}\u00a0%). "
        f"All {shown.height}: "
    )
    assert f"of split 0: {shown.height} of 32 answers, held out" in text(browser, "#basis")
    titles = browser.ask(
        "[...document.querySelectorAll('#histogram rect title')].map((one) => one.textContent)"
    )
    counts = [title.replace(",", "").split()[:2] for title in titles]
    assert sum(int(n) for n, word in counts if word == "correct") == shown["correct"].sum()
    assert sum(int(n) for n, word in counts if word == "wrong") == (~shown["correct"]).sum()


@pytest.mark.parametrize("chart", ["histogram", "coverage"])
def test_the_threshold_is_dragged_on_the_charts(browser, explorer, chart):
    browser.open(explorer, "#threshold=0.9")
    wanted = 0.3 if chart == "histogram" else 0.5
    # Where the chart has that share of its axis, wherever the page has drawn it.
    x, y = browser.ask(
        f"(() => {{ const chart = document.getElementById({chart!r});"
        f" const place = new DOMPoint(across({wanted}), up(0.5)).matrixTransform(chart.getScreenCTM());"
        " return [place.x, place.y]; })()"
    )
    browser.point(x, y)
    threshold = float(text(browser, "#at"))
    if chart == "histogram":
        assert threshold == pytest.approx(wanted, abs=0.011)
    else:
        held_out = ANSWERS["held_out.trace_plus"].drop_nulls().sort(descending=True)
        half = held_out[len(held_out) // 2 - 1]
        assert half - 0.01 < threshold <= half
        kept = len(held_out) // 2
        assert re.match(rf"At or above it: ({kept}|{kept + 1}) answers", text(browser, "#kept"))


def test_the_calibration_error_is_the_metrics(browser, explorer):
    browser.open(explorer, "#by=seq_logp")
    # Of one split: a mean over splits is better calibrated than any of them.
    own = ANSWERS.drop_nulls("held_out.seq_logp")
    p, right = own["held_out.seq_logp"].to_numpy(), own["correct"].to_numpy()
    bins = np.minimum((p * 15).astype(int), 14)
    error = sum(abs((p - right)[bins == one].sum()) for one in range(15)) / len(p)
    shown = browser.ask("document.getElementById('reliability').getAttribute('aria-label')")
    assert float(shown.split()[-1]) == pytest.approx(error, abs=2e-3)
    assert float(text(browser, "#ranking").split()[-1]) == pytest.approx(auroc(p, right), abs=2e-3)
    hovers = browser.ask(
        "[...document.querySelectorAll('#reliability circle title')].map((one) => one.textContent)"
    )
    counts = [re.match(r"(\d+) of (\d+) answers correct", hover).groups() for hover in hovers]
    assert [sum(map(int, column)) for column in zip(*counts, strict=True)] == [right.sum(), len(p)]


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("disagreement&versus=seq_logp",
         -(pl.col("probability.trace_plus").round_sig_figs(4)
           - pl.col("probability.seq_logp").round_sig_figs(4)).abs().round(10)),
        ("long", -pl.col("tokens").list.len().cast(int)),
        ("short", pl.col("tokens").list.len()),
    ],
)  # fmt: skip
def test_answers_are_ordered_by_disagreement_and_by_length(browser, explorer, order, key):
    browser.open(explorer, f"#order={order}")
    wanted = ANSWERS.with_row_index().sort(key, "index")["name"].to_list()
    names = listed(browser)
    assert len(names) == len(wanted)
    if "disagreement" in order:  # equal but for the last bits
        keys = dict(zip(ANSWERS["name"], ANSWERS.select(key).to_series(), strict=True))
        assert [keys[name] for name in names] == pytest.approx([keys[name] for name in wanted])
    else:
        assert names == wanted


def test_a_long_question_ends_visibly_and_is_shown_whole(browser, tmp_path):
    long = ANSWERS.with_columns(question=pl.lit("A line of the question.\n" * 20 + "The last."))
    browser.open(written(tmp_path, long), f"#answer={long['example_id'][0]}&order=up")
    height = "(({clientHeight, scrollHeight}) => scrollHeight > clientHeight)"
    question = "document.querySelector('#answer h2')"
    assert browser.ask(f"{height}({question})")
    browser.ask("document.querySelector('#answer h2 + button').click()")
    assert not browser.ask(f"{height}({question})")


def test_answers_are_chosen_by_language(browser, explorer):
    browser.open(explorer, "#language=de")
    assert listed(browser) == expected(ANSWERS.filter(language="de"))


def test_the_passage_shows_where_the_reference_stands(browser, explorer):
    row = ANSWERS.drop_nulls("context").row(3, named=True)
    browser.open(explorer, f"#answer={row['name'].replace('/', '%2F')}")
    assert row["context"] in text(browser, ".passage")
    assert text(browser, ".passage mark.reference") == row["references"][0]
    without = ANSWERS.filter(pl.col("context").is_null()).row(0, named=True)
    browser.open(explorer, f"#answer={without['name'].replace('/', '%2F')}")
    assert browser.ask("document.querySelectorAll('#passage').length") == 0


def test_the_same_question_stands_beside_it_and_leads_there(browser, explorer):
    row = ANSWERS.row(0, named=True)
    family = ANSWERS.filter(task=row["task"], group_id=row["group_id"])
    browser.open(explorer, f"#outcome=correct&answer={row['name'].replace('/', '%2F')}")
    browser.ask(f"location.hash = 'answer={row['name'].replace('/', '%2F')}'; 1")
    browser.wait_for(f"{LINK} && {LINK}.hash.includes({row['example_id']!r})")
    links = "[...document.querySelectorAll('.elsewhere tbody a')]"
    names = browser.ask(
        f"{links}.map((one) => new URLSearchParams(one.hash.slice(1)).get('answer'))"
    )
    assert {*names, row["name"]} == set(family["name"])
    browser.ask(f"{links}[0].click()")
    browser.wait_for(f"new URLSearchParams({LINK}.hash.slice(1)).get('answer') === {names[0]!r}")


def test_hits_are_marked(browser, explorer):
    browser.open(explorer, "#find=seven+old")
    assert browser.ask("document.querySelectorAll('.row mark.hit').length") > 0
    marked = browser.ask("[...document.querySelectorAll('mark.hit')].map((one) => one.textContent)")
    assert {one.lower() for one in marked} == {"seven old"}


def test_arrows_work_wherever_the_focus_is_but_in_controls_that_use_them(browser, explorer):
    browser.open(explorer, ALL)
    names = listed(browser)
    browser.press("Home")
    for focus in ("answer", "find", "everything", "list"):
        before = chosen(browser)
        browser.ask(f"document.getElementById({focus!r}).focus()")
        browser.press("ArrowDown")
        assert names.index(chosen(browser)) == names.index(before) + 1
    before = chosen(browser)
    browser.ask("document.getElementById('threshold').focus()")
    browser.press("ArrowDown")
    assert chosen(browser) == before
    assert "find" in text(browser, "#keys")


def test_an_answer_can_be_copied_as_json(browser, explorer):
    browser.open(explorer, "#order=long")
    row = ANSWERS.filter(name=chosen(browser)).row(0, named=True)
    copied = json.loads(
        browser.ask(
            "(() => { let text; "
            "navigator.clipboard.writeText = (given) => { text = given; return Promise.resolve(); };"
            " document.querySelectorAll('#answer .copy')[1].click(); return text; })()"
        )
    )
    assert copied["example_id"] == row["example_id"]
    assert copied["tokens"] == row["tokens"]
    assert copied["context"] == row["context"]
    assert copied["probability"]["trace_plus"] == pytest.approx(
        row["probability.trace_plus"], rel=1e-3
    )


@pytest.mark.pages
def test_a_phone_shows_the_answer_without_scrolling(tmp_path, explorer):
    with started(tmp_path / "profile", width=500, height=800) as phone:
        phone.open(explorer)
        top = phone.ask("document.querySelector('#answer .tokens').getBoundingClientRect().top")
        assert top < phone.ask("innerHeight") * 0.75
        assert phone.ask("document.documentElement.scrollWidth <= innerWidth")
        siblings = ANSWERS.filter(pl.col("example_id").is_duplicated())
        phone.open(explorer, f"#answer={siblings['name'][0].replace('/', '%2F')}")
        phone.wait_for("document.querySelector('.elsewhere')")
        # No window is this narrow.
        phone.ask("document.documentElement.style.width = '360px'")
        shown = "document.querySelector('#answer')"
        assert phone.ask(f"{shown}.scrollWidth <= {shown}.clientWidth")


def test_an_answer_is_shown_with_all_that_is_known_of_it(browser, explorer):
    row = ANSWERS.filter(model="tiny-a", task="sums", correct=False, error_kind="number").row(
        0, named=True
    )
    browser.open(explorer, f"#answer={row['name'].replace('/', '%2F')}")
    assert text(browser, "#answer h2") == row["question"]
    assert text(browser, "#answer .verdict") == "✗ Wrong in a number"
    assert browser.ask("document.querySelector('.tokens').textContent") == "".join(row["tokens"])
    for words in (*row["references"], row["prediction"]):
        assert words in text(browser, "#answer dl")
    browser.ask("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    browser.wait_for(
        "document.querySelector('#prompt pre') && document.querySelector('#tokens td')"
    )
    assert text(browser, "#prompt pre") == row["prompt"]
    figures = browser.ask(
        "[...document.querySelectorAll('#tokens tbody tr')].map(row => row.lastChild.textContent)"
    )
    assert [float(figure) for figure in figures] == pytest.approx(row["entropy"], abs=1e-4)
    for id, label in ((one["id"], one["label"]) for one in ESTIMATORS):
        cells = browser.ask(
            f"[...document.querySelectorAll('[data-estimator={id}] > *')].map(cell => cell.innerText)"
        )
        assert cells[0] == label
        probability, score = row[f"probability.{id}"], row[f"score.{id}"]
        assert (
            cells[1] == "–"
            if probability is None
            else float(cells[1]) == pytest.approx(probability, abs=6e-4)
        )
        assert (
            cells[3] == "–" if score is None else float(cells[3]) == pytest.approx(score, rel=1e-2)
        )


@pytest.mark.parametrize("name", ["short", "long"])
def test_the_peak_window_is_marked(browser, explorer, name):
    lengths = ANSWERS["tokens"].list.len()
    row = ANSWERS.filter(lengths == 2 if name == "short" else lengths > 12).row(0, named=True)
    browser.open(explorer, f"#answer={row['name'].replace('/', '%2F')}")
    marked = browser.ask("document.querySelector('.tokens .peak').textContent")
    assert marked == "".join(row["tokens"][row["peak"] : row["peak"] + 4])


def test_tokens_are_shaded_by_what_is_chosen(browser, explorer):
    row = ANSWERS.filter(ANSWERS["tokens"].list.len() > 12).row(0, named=True)
    darkest = contents(ANSWERS.drop("name"), ESTIMATORS, MODELS, TASKS, "trial", 64)["darkest"]
    browser.open(explorer, f"#answer={row['name'].replace('/', '%2F')}")
    for shade in ("entropy", "surprisal"):
        browser.ask(f"document.querySelector('#shade [value={shade}]').click()")
        shades = browser.ask(
            "[...document.querySelectorAll('.token')].map(token => parseFloat(token.style.getPropertyValue('--shade')))"
        )
        wanted = [100 * min(1, value / darkest[shade]) ** 0.5 for value in row[shade]]
        assert shades == pytest.approx(wanted, abs=0.5)
        colours = browser.ask(
            "[...document.querySelectorAll('.token')].map(token => getComputedStyle(token).backgroundColor)"
        )
        assert len(set(colours)) > 3


def test_only_rows_in_sight_are_in_the_page_and_keys_move_through_all(browser, explorer):
    browser.open(explorer, ALL)
    assert 10 < browser.ask(f"{ROWS}.length") < 40
    browser.press("End")
    last = expected()[-1]
    assert chosen(browser) == last
    assert browser.ask(f"{ROWS}.length") < 40
    inside = (
        "(() => { const row = document.querySelector('[aria-selected=true]').getBoundingClientRect();"
        " const box = document.getElementById('list').getBoundingClientRect();"
        " return row.top >= box.top - 1 && row.bottom <= box.bottom + 1; })()"
    )
    assert browser.ask(inside)
    browser.press("PageUp", "ArrowUp")
    assert browser.ask(inside)
    browser.press("Home")
    assert chosen(browser) == expected()[0]
    browser.ask(f"{ROWS}[3].click()")
    assert chosen(browser) == expected()[3]


def test_filters_that_nothing_meets_say_so(browser, explorer):
    browser.open(explorer, "#find=nothing+like+this")
    assert text(browser, "#count") == "No answers"
    assert "No answer matches" in text(browser, "#answer")
    browser.press("ArrowDown")
    browser.ask("document.getElementById('everything').click()")
    assert text(browser, "#count").startswith("64 answers")


ATTACKS = [
    "<script>window.attacked = 1</script>",
    "</script><img src=x onerror='window.attacked = 2'>",
    "\u202eright to left\u202c and \u2067isolated",
    "nul \0, bell \7, escape \x1b[31m and delete \x7f",
    "\u2028line\u2029paragraph \ufeff `${window.attacked = 3}` {{ 7*7 }} &lt;b&gt;",
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: re.sub(r"\W+", "-", attack)[:20])
def test_hostile_text_is_shown_as_text(browser, tmp_path, attack):
    hostile = ANSWERS.with_columns(
        example_id=pl.lit(attack) + pl.col("example_id"),
        prompt=pl.lit(attack),
        question=pl.lit(attack),
        prediction=pl.lit(attack),
        references=pl.concat_list(pl.lit(attack)),
        distractors=pl.concat_list(pl.lit(attack)),
        tokens=pl.col("tokens").list.eval(pl.lit(attack)),
        language=pl.lit(attack),
    )
    browser.open(written(tmp_path, hostile))
    assert len(opening(browser)) == 2
    browser.press("ArrowDown")
    browser.ask("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    browser.wait_for("document.querySelector('#prompt pre')")
    seen = browser.ask("document.querySelector('#answer h2').textContent")
    # What shows nothing or reorders is spelled out; all else stands as it was given.
    assert not re.search(r"[\0-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", seen)
    restored = re.sub(r"⟨U\+(\w+)⟩", lambda code: chr(int(code[1], 16)), seen)
    restored = re.sub(r"[\u2400-\u241f]", lambda picture: chr(ord(picture[0]) - 0x2400), restored)
    assert restored == attack
    assert seen in browser.ask("document.querySelector('#prompt pre').textContent")
    assert browser.ask("window.attacked") is None
    assert browser.ask("document.querySelectorAll('img, iframe, object, link, base').length") == 0
    assert browser.ask("document.scripts.length") == 2
    assert browser.complaints == []


def test_the_page_asks_for_nothing_and_could_not(browser, explorer):
    browser.open(explorer, ALL)
    listed(browser)
    assert browser.requests == [explorer.as_uri()]
    blocked = browser.ask(
        "new Promise((done) => {"
        " document.addEventListener('securitypolicyviolation', (event) => done(event.violatedDirective));"
        " document.body.append(Object.assign(new Image(), { src: 'https://example.invalid/x' })); })"
    )
    assert blocked == "img-src"
    assert browser.ask("fetch('https://example.invalid/').then(() => 'sent', () => 'refused')") == (
        "refused"
    )


def test_a_frame_without_an_address_of_its_own_shows_the_answers_too(browser, explorer, tmp_path):
    # As in `snakemake --report report.html`, where results are data: addresses.
    frame = tmp_path / "frame.html"
    frame.write_text(
        "<script>onmessage = (event) => { window.told = event.data; }</script>"
        "<iframe sandbox='allow-scripts' width=1000 height=600></iframe>"
    )
    telling = (
        "<script>setTimeout(() => parent.postMessage(document.body.innerText, '*'), 1500)</script>"
    )
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", explorer.read_text())
    browser.open(frame)
    browser.ask(f"document.querySelector('iframe').srcdoc = {json.dumps(text + telling)}; 1")
    browser.wait_for("window.told")
    assert "16 answers" in browser.ask("window.told")
    assert browser.complaints == []


@pytest.mark.parametrize("fragment", ["", "#order=up"])
def test_every_control_and_table_is_named(browser, explorer, fragment):
    browser.open(explorer, fragment)
    nameless = browser.ask(
        "[...document.querySelectorAll('select, input, textarea, button')].filter((one) =>"
        " !(one.labels?.length || one.textContent.trim())).map((one) => one.outerHTML)"
    )
    assert nameless == []
    assert browser.ask(
        "[...document.querySelectorAll('table')].every((one) => one.caption && one.tHead)"
    )
    assert browser.ask("[...document.querySelectorAll('th')].every((one) => one.scope)")
    browser.press("ArrowDown")
    active = browser.ask("document.getElementById('list').getAttribute('aria-activedescendant')")
    assert (
        browser.ask(f"document.getElementById({active!r}).getAttribute('aria-selected')") == "true"
    )


def test_answers_without_entropies_show_what_is_known(browser, tmp_path):
    place = 3
    without = pl.when(pl.int_range(pl.len()) != place).then
    frame = ANSWERS.with_columns(without("entropy").alias("entropy"), without("peak").alias("peak"))
    row = frame.row(place, named=True)
    path = written(tmp_path, frame)
    browser.open(path, f"#order=peak&answer={row['name'].replace('/', '%2F')}")
    tokens = "[...document.querySelectorAll('#answer .token')].map((one) => one.textContent)"
    assert len(browser.ask(tokens)) == len(row["tokens"])
    text = browser.ask("document.getElementById('answer').textContent")
    assert "no entropies" in text
    assert browser.ask("document.querySelector('#answer .token').title").endswith("entropy – nats")
    assert len(listed(browser)) == frame.height
    assert listed(browser)[-1] == row["name"], "an unknown peak comes last"
