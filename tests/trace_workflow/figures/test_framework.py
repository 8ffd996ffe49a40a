"""The framework figure: legible, and drawn for whatever answer it is given."""

import warnings
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from support.arrow_files import write_arrow
from support.scripts import run_script
from trace_workflow.figures import figure_style
from trace_workflow.figures.drawable_text import drawable, is_legible, token_label, wrap
from trace_workflow.figures.framework import HEIGHT, draw_framework, peak_window
from trace_workflow.figures.framework_example import FEATURES, FrameworkExample
from tracecal.estimators.features import answer_features
from tracecal.estimators.operators import window_peak
from tracecal.io.traces import TRACES, provenance


def example(question="Who founded it?", tokens=("The", " cat", " sat"), probability=0.5, **values):
    n = len(tokens)
    entropy = values.get("entropy", [0.1 * (i % 7) for i in range(n)])
    surprisal = values.get("surprisal", [0.2 * (i % 5) for i in range(n)])
    frame = pl.DataFrame({"example_id": ["e"], "surprisal": [surprisal], "entropy": [entropy]})
    features = answer_features(frame).select(FEATURES).row(0, named=True)
    judged = values.get("correct", False), ["Rome, Italy"]
    return FrameworkExample(
        question, "".join(tokens), *judged, tokens, surprisal, entropy, features, probability
    )


ODD = {
    "plain": example(),
    "one token": example(tokens=["<|endoftext|>"], entropy=[0.0], surprisal=[0.0]),
    "no text": example("", [""], None),
    "Hindi": example("भारत की राजधानी क्या है? " * 9, ["नई", " दिल्ली"] * 3),
    "Chinese": example("中国的首都是什么？" * 20, list("北京是中国的首都。")),
    "control characters": example("a\x00b\x07\r\n\tc\u202e", ["\n", "\x1b[31m", "\u200b", " "]),
    "LaTeX": example("$\\frac{x_1}{ $ & # %", ["$", "_", "^{", "\\", "}}"]),
    "one long word": example("W" * 400, ["M" * 300]),
    "long": example("word " * 300, [" word"] * 200),
    "high": example(tokens=["a", "b"] * 7, entropy=[11.9, 0.0] * 7, surprisal=[103.25, 0.0] * 7),
    "sure": example(tokens=["a"] * 15, entropy=[0.0] * 15, surprisal=[0.0] * 15),
}


def texts(figure):
    """The drawn texts that are not tick labels, and the token labels."""
    with figure_style.applied():
        figure.draw_without_rendering()
    found = [t for t in figure.findobj(lambda a: hasattr(a, "get_text")) if t.get_text().strip()]
    ticks = [t for axes in figure.axes for t in axes.get_xticklabels()]
    return [t for t in found if t not in ticks and t.get_visible()], ticks


@pytest.mark.parametrize("name", ODD)
def test_it_draws_any_answer_and_no_text_overlaps_or_leaves_the_page(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = draw_framework(ODD[name])
        others, tokens = texts(figure)
    page = figure.bbox
    boxes = [(text.get_text(), text.get_window_extent()) for text in others]
    for text, box in boxes + [(t.get_text(), t.get_window_extent()) for t in tokens]:
        assert page.x0 <= box.x0 and box.x1 <= page.x1, text
        assert page.y0 <= box.y0 and box.y1 <= page.y1, text
    for (one, first), (other, second) in combinations(boxes, 2):
        assert not first.overlaps(second), (one, other)
    for token in tokens:
        assert not any(token.get_window_extent().overlaps(box) for _, box in boxes)


def test_it_is_as_wide_as_the_text_and_legible():
    figure = draw_framework(ODD["plain"])
    assert tuple(figure.get_size_inches()) == (figure_style.TEXT_WIDTH, HEIGHT)
    assert min(t.get_fontsize() for group in texts(figure) for t in group) >= 6.5


def test_it_shows_the_examples_own_numbers():
    shown = example(entropy=[0.5, 1.0, 3.0], surprisal=[0.1, 0.2, 4.0], probability=0.318)
    others, tokens = texts(draw_framework(shown))
    written = "\n".join(text.get_text() for text in others)
    weights = np.exp(-np.arange(3) / 2)
    decayed = float(weights @ [0.5, 1.0, 3.0] / weights.sum())
    risk = 0.4 * decayed + 0.4 * 1.5 + 0.2 * 4.3 / 3**0.25
    assert f"D(H) = {decayed:.2f}" in written
    assert "M(H) = 1.50" in written
    assert f"= {risk:.2f}" in written
    assert f"exp(−R) = {np.exp(-risk):.2f}" in written
    assert "probability 0.32" in written
    assert "slope 1.25, T = 3" in written
    assert [token.get_text() for token in tokens if token.get_text()] == ["The", "cat", "sat"]


def test_it_says_that_the_answer_is_wrong_and_how_sure_it_sounds():
    def written(correct):
        shown = example(surprisal=[0.0, 0.4, 2.0], correct=correct)
        return " ".join(" ".join(t.get_text() for t in texts(draw_framework(shown))[0]).split())

    assert "(a) A wrong answer" in written(False)
    assert "✗ wrong: it is Rome, Italy" in written(False)
    # The mean of the probabilities, as MeanProb: not exp of their mean logarithm.
    mean = np.exp([0.0, -0.4, -2.0]).mean()
    assert f"mean probability of its tokens {mean:.2f}" in written(False)
    assert f"{mean:.2f}" != f"{np.exp(-0.8):.2f}"
    assert "wrong" not in written(True)


def test_a_question_on_a_passage_says_that_the_prompt_holds_more():
    for passage in (False, True):
        figure = draw_framework(example()._replace(passage=passage))
        written = "\n".join(t.get_text() for t in texts(figure)[0])
        assert "Question" in written and "Prompt" not in written
        assert ("(On a passage)" in written) == passage


def test_without_trace_plus_no_probability_is_claimed():
    written = "\n".join(t.get_text() for t in texts(draw_framework(example(probability=None)))[0])
    assert "probability\nof being correct" in written


@pytest.mark.parametrize("name", ["plain", "Chinese"])
def test_the_same_answer_gives_the_same_bytes(name, tmp_path):
    for turn in "ab":
        paths = tmp_path / f"{turn}.pdf", tmp_path / f"{turn}.svg"
        figure_style.save(draw_framework(ODD[name]), *paths, "Title", "Description.")
    for kind in ("pdf", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    assert b"/Type3" not in (tmp_path / "a.pdf").read_bytes()


@settings(max_examples=50)
@given(st.lists(st.floats(0, 12, width=32), min_size=1, max_size=30))
def test_the_shaded_window_is_where_the_operator_peaks(entropy):
    first, last = peak_window(entropy)
    peak = pl.DataFrame({"h": [entropy]}).select(window_peak(pl.col("h"), 4)).item()
    assert np.mean(entropy[first:last]) == pytest.approx(peak, abs=1e-6)
    assert last - first == min(4, len(entropy))


def test_what_the_font_lacks_becomes_a_box():
    assert drawable("a 京\n\tb\x07") == "a □ b"
    assert is_legible("Łódź – €5?\n")
    assert not is_legible("首都")


@pytest.mark.parametrize(
    ("token", "shown"),
    [(" cat", "cat"), ("\n", "↵"), ("  ", "␣"), ("", "∅"), ("<|endoftext|>", "<|endof…")],
)
def test_tokens_as_labels(token, shown):
    assert token_label(token) == shown


@settings(max_examples=40)
@given(st.text(max_size=120), st.integers(1, 5))
def test_wrapped_text_keeps_its_width_and_its_beginning(text, lines):
    figure = Figure()
    found = wrap(figure, text, 1.0, lines)
    parts = found.split("\n")
    assert len(parts) <= lines
    for part in parts:
        probe = figure.text(0, 0, part, fontsize=figure_style.SMALL, parse_math=False)
        assert probe.get_window_extent().width / figure.dpi <= 1.0 + 1e-6
    kept, whole = ("".join(one.split()) for one in (found.removesuffix("…"), drawable(text)))
    assert whole.startswith(kept)
    assert found.endswith("…") or kept == whole


def test_the_adapter_draws_the_peak_of_the_main_study(tmp_path, pytestconfig):
    rows = [
        {"example_id": name, "prompt": "P", "prompt_token_ids": [1], "answer": f" {name}."}
        | {"token_ids": [1, 2, 3, 4, 5], "tokens": [name, "b", "c", "d", "."]}
        | {"surprisal": [0.5] * 5, "entropy": entropy, "finish_reason": "eos"}
        for name, entropy in (("flat", [1.0] * 5), ("sharp", [0.0, 0, 0, 0, 5]))
    ]
    metadata = provenance("m", "r", "float32", "greedy", 0)
    write_arrow(rows, TRACES, metadata, tmp_path / "t.arrow")
    frame = pl.DataFrame(rows)
    answer_features(frame).write_parquet(tmp_path / "f.parquet")
    ids = ["flat", "sharp"]
    questions = {"example_id": [*ids, "other"], "question": ["Q flat?", "Q sharp?", "Q other?"]}
    questions["references"] = [["blunt"], ["keen", "acute"], ["another"]]
    questions["context"] = [None, "A passage.", None]
    pl.DataFrame(questions).write_parquet(tmp_path / "q.parquet")
    pl.DataFrame({"example_id": ids, "correct": False}).write_parquet(tmp_path / "l.parquet")
    splits = {
        "estimator": "trace_plus",
        "example_id": [*ids, "sharp"],
        "probability": [0.3, 0.1, 0.3],
    }
    pl.DataFrame(splits).write_parquet(tmp_path / "p.parquet")
    drawn = []
    keep = figure_style.save
    figure_style.save = lambda figure, *others: (drawn.append(figure), keep(figure, *others))

    def run(pairs):
        run_script(
            "draw_figure.py",
            tmp_path,
            input={
                "traces": [tmp_path / "t.arrow"],
                "features": [tmp_path / "f.parquet"],
                "labels": [tmp_path / "l.parquet"],
                "tasks": [tmp_path / "q.parquet"],
                "predictions": [tmp_path / "p.parquet"],
            },
            output={"pdf": tmp_path / "o.pdf", "svg": tmp_path / "o.svg"},
            params={
                "settings": {"pairs": pairs},
                "words": {"title": "The method", "caption": "An answer & its trace."},
            },
            modules=("trace_workflow.figures.framework",),
            figure="framework",
        )

    try:
        run([["m", "t"]])
        written = " ".join(" ".join(text.get_text() for text in texts(drawn[0])[0]).split())
        assert "Q sharp?" in written and "it is keen" in written
        assert "probability 0.20" in written
        with pytest.raises(SystemExit):
            run([])
    finally:
        figure_style.save = keep
