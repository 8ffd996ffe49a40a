"""Which word a trace points at, beside the words that people changed in translations.

    PYTHONPATH=workflow_scripts:tests python -m benchmarks.changed_words FOLDER

FOLDER holds `translations.parquet` (docs/background/real_answers.md says where from): answers with
`tokens`, `words` and, for each word, whether people `changed` it. Of the test split, translations
count in which some but not all words were changed. Prints how often each way of choosing a word
chooses one that was changed, by pair of languages, with 95 % intervals over translations, and draws
docs/changed_words.svg. Seconds.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from benchmarks.pictures import save_picture
from trace_workflow.figures import figure_style
from tracecal.estimators.features import WINDOW

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "changed_words.svg"
CAPTION = "How often each way of choosing a word chooses one that people changed."
RESAMPLES, SEED = 2000, 2026
WAYS = {
    "highest": "word of highest surprisal",
    "usual": "word changed most often elsewhere",
    "rarest": "rarest word",
    "longest": "longest word",
    "random": "random word",
    "lowest": "word of lowest surprisal",
    "window": f"peak window ({WINDOW} tokens)",
    "random_window": "random window",
}


def word_surprisals(tokens: list[Mapping]) -> tuple[list[str], list[float], np.ndarray]:
    """The words of a translation, the largest surprisal in each, and the word of each token."""
    words, surprisals, word_of, text = [], [], [], ""
    for token in tokens[:-1]:  # the last ends the translation
        surprisal = -token["logprob"]
        if not text:
            surprisals.append(surprisal)
        surprisals[-1] = max(surprisals[-1], surprisal)
        word_of.append(len(words))
        text += token["token"].removesuffix("@@")
        if not token["token"].endswith("@@"):
            words.append(text)
            text = ""
    return words, surprisals, np.array(word_of)


def hit_rate(changed: np.ndarray, values: Iterable[float]) -> float:
    """The share of changed words among those with the largest of `values`, [words]."""
    values = np.asarray(list(values))
    return float(changed[values == values.max()].mean())


def hits(rows: pl.DataFrame, change_rate: Mapping[str, float], counts: Counter) -> pl.DataFrame:
    """For each translation, the probability that a way chooses a changed word, ties at random."""
    chosen = []
    for row in rows.iter_rows(named=True):
        words, surprisals, word_of = word_surprisals(row["tokens"])
        changed = np.array(row["changed"])
        if words != row["words"] or not 0 < changed.mean() < 1:
            continue
        tokens = -np.array([token["logprob"] for token in row["tokens"][:-1]])
        width = min(WINDOW, len(tokens))
        means = np.convolve(tokens, np.ones(width) / width, "valid")
        windows = np.convolve(changed[word_of], np.ones(width), "valid") > 0
        chosen.append(
            {
                "highest": hit_rate(changed, surprisals),
                "usual": hit_rate(changed, (change_rate.get(word, 0.0) for word in words)),
                "rarest": hit_rate(changed, (-counts[word] for word in words)),
                "longest": hit_rate(changed, map(len, words)),
                "random": float(changed.mean()),
                "lowest": hit_rate(changed, (-value for value in surprisals)),
                "window": hit_rate(windows, means),
                "random_window": float(windows.mean()),
            }
        )
    return pl.DataFrame(chosen)


def learned_rates(rows: pl.DataFrame) -> dict[str, float]:
    """How often each word was changed in the development split, with one word in two added."""
    n, changed = Counter(), Counter()
    for words, flags in rows.select("words", "changed").iter_rows():
        n.update(words)
        changed.update(word for word, flag in zip(words, flags, strict=True) if flag)
    return {word: (changed[word] + 0.5) / (n[word] + 1) for word in n}


def intervals(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means of `values` [n, ways] in each resample of translations, [RESAMPLES, ways]."""
    weights = rng.multinomial(len(values), np.full(len(values), 1 / len(values)), RESAMPLES)
    return weights @ values / len(values)


def measure(folder: Path) -> pl.DataFrame:
    """`pair`, `way`, `n`, `mean`, `low`, `high`; the pair None is the mean of pairs."""
    answers = pl.read_parquet(folder / "translations.parquet")
    answers = answers.filter(pl.col("words").list.len() == pl.col("changed").list.len())
    rng, tables, resampled = np.random.default_rng(SEED), [], []
    for pair in answers["pair"].unique().sort():
        rows = answers.filter(pair=pair)
        learned, tested = rows.filter(split="dev"), rows.filter(split="test")
        counts = Counter(rows["words"].explode().to_list())
        chosen = hits(tested, learned_rates(learned), counts)
        resampled.append(intervals(chosen.to_numpy(), rng))
        tables.append((pair, chosen.height, tested.height, chosen.mean().row(0), resampled[-1]))
    means = np.mean([table[3] for table in tables], axis=0)
    n, total = (sum(table[place] for table in tables) for place in (1, 2))
    tables.append((None, n, total, means, np.mean(resampled, axis=0)))
    frames = []
    for pair, n, total, mean, draws in tables:
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        columns = {"way": [*WAYS], "mean": mean, "low": low, "high": high}
        frames.append(
            pl.DataFrame(columns).with_columns(pair=pl.lit(pair, pl.String), n=n, of=total)
        )
    return pl.concat(frames)


def draw(table: pl.DataFrame) -> Figure:
    """A row for each way: the mean over pairs with its interval, and each pair as a dash."""
    figure = Figure(figsize=(figure_style.TEXT_WIDTH, 3.0))
    axes = figure.subplots()
    means = table.filter(pl.col("pair").is_null()).rows_by_key("way", named=True, unique=True)
    for place, way in enumerate(WAYS):
        mean = means[way]
        color = figure_style.TRACE.color if way in ("highest", "window") else figure_style.MUTED
        pairs = table.filter(way=way).drop_nulls("pair")["mean"]
        axes.plot(pairs, [place] * len(pairs), "|", color=color, markersize=8)
        axes.plot([mean["low"], mean["high"]], [place, place], color=color, linewidth=2.5)
        axes.plot(mean["mean"], place, "o", color=color, markersize=5)
        beside = {"transform": axes.get_yaxis_transform(), "va": "center"}
        axes.text(1.01, place, f"{100 * mean['mean']:.0f} %", **beside)
    axes.set_yticks(range(len(WAYS)), WAYS.values())
    axes.invert_yaxis()
    axes.axhline(len(WAYS) - 2.5, color=figure_style.FAINT)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_xlabel(
        "translations in which people changed this word, or window\n"
        "(dot: mean, with 95 % interval; dash: one pair of languages)"
    )
    highest, random = (means[way]["mean"] for way in ("highest", "random"))
    figure_style.message(
        figure,
        f"The most surprising word was changed {highest / random:.1f} times as often as a random one",
    )
    return figure


def main(folder: str) -> None:
    table = measure(Path(folder))
    with pl.Config(tbl_rows=-1, tbl_hide_column_data_types=True, float_precision=3):
        print(table)
    with figure_style.applied():
        save_picture(draw(table), PICTURE, "Changed words", CAPTION)


if __name__ == "__main__":
    main(*sys.argv[1:])
