"""Sets of real answers with verdicts: the repository's own, and those of a folder.

`read_real_sets(folder)` reads `translations.parquet`, `options.parquet` and `json_answers.parquet` of the
folder (docs/background/real_answers.md says where they come from), one set for each pair of languages
or for each model and task; the cities of `examples/`; and the answers of the demo once it has been run
(`make demo`).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from tracecal.answers.answers import answers_in
from tracecal.answers.groups import group_answers
from tracecal.answers.reading import Reading
from tracecal.estimators.features import TRACE_INPUTS, compute_inputs

ROOT = Path(__file__).resolve().parents[1]
VOCABULARY = 200_000  # of entropies from listed log-probabilities
# By kind: the file of a folder, and the columns with a set for each of their values.
FILES = {
    "translations": ("translations.parquet", ["pair"]),
    "one-letter answers": ("options.parquet", ["model", "task"]),
    "JSON answers": ("json_answers.parquet", ["model", "task"]),
}
CITIES, DEMO = "cities", "demo"


@dataclass(frozen=True)
class AnswerSet:
    """Answers to one task by one model.

    Attributes
    ----------
    name, kind : str
        Sets of one kind have the same source.
    frame : polars.DataFrame
        The answers as `tracecal.read_answers` reads them, all with a verdict and a trace.
    """

    name: str
    kind: str
    frame: pl.DataFrame = field(repr=False)

    @cached_property
    def groups(self) -> np.ndarray:
        """Number of each answer's group, [n]."""
        groups = group_answers(self.frame)
        rows = self.frame.select("example_id").join(
            groups, on="example_id", maintain_order="left", validate="1:1"
        )
        return rows["group_id"].rank("dense").to_numpy() - 1

    @cached_property
    def with_inputs(self) -> pl.DataFrame:
        """`frame` with all features and scores of traces."""
        inputs = compute_inputs(self.frame, TRACE_INPUTS)
        return self.frame.join(inputs, on="example_id", maintain_order="left", validate="1:1")

    @cached_property
    def correct(self) -> np.ndarray:
        return self.frame["correct"].to_numpy()

    @cached_property
    def confidence(self) -> np.ndarray:
        """The geometric mean of the tokens' probabilities, [n]."""
        return self.frame.select((-pl.col("surprisal").list.mean()).exp()).to_series().to_numpy()

    def draw_labelled(self, rng: np.random.Generator, least: int) -> np.ndarray:
        """Mask [n] of the answers of random groups, the first that have `least` answers."""
        order = rng.permutation(self.groups.max() + 1)[self.groups]
        return order <= np.sort(order)[least - 1]


def read_real_sets(folder: Path | None) -> list[AnswerSet]:
    """Read all sets; those of a folder where one is given, and of the demo where it was run."""
    sets = [_answer_set("cities", CITIES, ROOT / "examples" / "labelled.jsonl"), *_demo_sets()]
    for kind, (file, columns) in FILES.items() if folder else ():
        for names, rows in sorted(pl.read_parquet(folder / file).group_by(columns)):
            texts = pl.col("answer").replace("", None)  # an empty one counts as not given
            rows = _without_pieces(rows.with_columns(texts))
            sets.append(_answer_set(" ".join(names), kind, rows))
    return sets


def _without_pieces(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without the texts of tokens, where `@@` marks pieces that do not spell the answers."""
    texts = rows.explode("tokens")["tokens"].struct.field("token")
    if not texts.str.ends_with("@@").any():
        return rows
    logprobs = pl.col("tokens").list.eval(pl.element().struct.field("logprob"))
    return rows.with_columns(logprobs=logprobs).drop("tokens")


def named_folder() -> Path | None:
    """The folder that `make bench REAL=FOLDER` names."""
    return Path(os.environ["REAL"]) if os.environ.get("REAL") else None


def _demo_sets() -> Iterator[AnswerSet]:
    run = ROOT / "results" / "demo"
    for path in sorted(run.glob("labels/*/*.parquet")):
        model, task = path.parent.name, path.stem
        stored = pl.read_ipc(run / "traces" / model / f"{task}.arrow")
        if "part" in stored.columns:  # no whole answers
            continue
        traces = answers_in(stored).frame
        # A calibrator is for one kind: where some answers end at a stop string, all count as if
        # they ended at a token, as `--stop-token included` says.
        traces = traces.with_columns(stop_token=pl.lit("included", traces["stop_token"].dtype))
        labels = pl.read_parquet(path).select("example_id", "correct")
        frame = traces.drop("correct").join(labels, on="example_id", how="inner")
        yield _answer_set(f"{model} {task}", DEMO, frame.select(traces.columns))


def _answer_set(name: str, kind: str, answers: pl.DataFrame | Path) -> AnswerSet:
    frame = answers_in(answers, Reading(vocabulary=VOCABULARY)).frame
    return AnswerSet(name, kind, frame.drop_nulls(["correct", "surprisal"]).sort("example_id"))
