"""TRACE's score under other hyperparameters, and with an answer's risk moved to other positions.

Paper, appendix E.4. `varied_scores` and `permuted_scores` return a row per answer and setting, with
the columns OPERATORS.
"""

import numpy as np
import polars as pl

from tracecal.estimators import operators as op
from tracecal.io.randomness import seeded

S, H = pl.col("surprisal"), pl.col("entropy")

OPERATORS = {
    "example_id": pl.String,
    "setting": pl.String,
    "level": pl.Float64,
    "draw": pl.Int64,
    "score": pl.Float64,
}
DEFAULT, PERMUTED = "default", "permuted"

# The paper's grid; the levels of each hyperparameter include its default.
GRID = {
    "alpha": (0.2, 0.3, 0.4, 0.5, 0.6),
    "beta": (0.2, 0.3, 0.4, 0.5, 0.6),
    "gamma": (0.1, 0.2, 0.3, 0.4),
    "decay": (1, 2, 4, 8),
    "window": (2, 4, 6, 8),
    "exponent": (0, 0.125, 0.25, 0.5, 0.75, 1),
}
MIXTURE = {"alpha": op.ALPHA, "beta": op.BETA, "gamma": op.GAMMA}
# The operators in the order of the mixture, by their hyperparameters.
OPERATOR = {
    "decay": lambda decay: op.decayed(H, decay),
    "window": lambda window: op.window_peak(H, window),
    "exponent": lambda exponent: op.length_normalised(S, exponent),
}
DEFAULTS = MIXTURE | {"decay": op.DECAY, "window": op.WINDOW, "exponent": op.LENGTH_EXPONENT}

# The mean of 20 draws has a standard error of 0.22 s.d. of one: 0.001 in the demo's average AUROC.
N_DRAWS = 20
# Answers whose draws are held in memory together; changes no result.
BATCH_SIZE = 500


def hyperparameters(setting: str, level: float) -> dict[str, float]:
    """TRACE's hyperparameters where `setting` takes `level` and the others their defaults.

    Where a mixture weight changes, the two others keep their ratio, and the three sum to 1.

    >>> {name: round(hyperparameters("gamma", 0.4)[name], 3) for name in MIXTURE}["gamma"]
    0.4
    """
    changed = {setting: level}
    if setting in MIXTURE:
        factor = (1 - level) / (1 - MIXTURE[setting])
        changed = {name: factor * weight for name, weight in MIXTURE.items()} | changed
    return DEFAULTS | changed


def varied_scores(traces: pl.DataFrame) -> pl.DataFrame:
    """TRACE's scores with its defaults (`setting` 'default') and at every level of the grid.

    `traces` holds `example_id`, `surprisal` and `entropy`.
    """
    settings = {(DEFAULT, None): DEFAULTS} | {
        (setting, level): hyperparameters(setting, level)
        for setting, levels in GRID.items()
        for level in levels
    }
    # Most settings share operators, so each is computed once.
    operators = traces.select(
        "example_id",
        **{
            _column(name, values[name]): operator(values[name])
            for values in settings.values()
            for name, operator in OPERATOR.items()
        },
    )
    frames = []
    for (setting, level), values in settings.items():
        columns = (pl.col(_column(name, values[name])) for name in OPERATOR)
        risk = op.mixture(*columns, *(values[name] for name in MIXTURE))
        frames.append(_scores(operators, setting, risk, level=level))
    return pl.concat(frames)


def permuted_scores(
    traces: pl.DataFrame, task: str, seed: int, draws: int = N_DRAWS
) -> pl.DataFrame:
    """TRACE's scores after `draws` random permutations of each answer's tokens.

    A token's surprisal and entropy move together, including the end token's; without entropies a
    score is None. An answer's permutations depend only on the seed, the task and its id, not on the
    number of draws.
    """
    frames = [
        _scores(_shuffle(answers, task, seed, draws), PERMUTED, op.trace_risk(S, H), "draw")
        for answers in traces.iter_slices(BATCH_SIZE)
    ]
    return pl.concat([pl.DataFrame(schema=OPERATORS), *frames]).sort("draw", "example_id")


def permutations(length: int, draws: int, key: str) -> np.ndarray:
    """Random orders [draws, length] of 0 … length - 1, the same for the same `key`."""
    return seeded(key).permuted(np.tile(np.arange(length), (draws, 1)), axis=1)


def _column(name: str, value: float) -> str:
    """The column of an operator where its hyperparameter `name` takes `value`."""
    return f"{name} {float(value)}"


def _scores(
    traces: pl.DataFrame,
    setting: str,
    risk: pl.Expr,
    draw: str | None = None,
    level: float | None = None,
) -> pl.DataFrame:
    columns = {
        "setting": pl.lit(setting),
        "level": pl.lit(level),
        "draw": pl.col(draw) if draw else pl.lit(None),
        "score": np.exp(-risk),
    }
    return traces.select("example_id", **columns).cast(OPERATORS)


def _shuffle(traces: pl.DataFrame, task: str, seed: int, draws: int) -> pl.DataFrame:
    """The traces once for each `draw`, with the tokens of every answer in a random order."""
    unknown = S.list.eval(pl.element() * None)
    tokens = traces.select("example_id", S, H.fill_null(unknown)).explode("surprisal", "entropy")
    lengths = traces["surprisal"].list.len().cast(pl.Int64).to_numpy()
    starts = np.cumsum(lengths) - lengths
    order = np.concatenate(
        [
            start + permutations(length, draws, f"{seed}:{task}:{example}")
            for example, start, length in zip(traces["example_id"], starts, lengths, strict=True)
        ],
        axis=1,
    )
    return (
        tokens[order.ravel()]
        .with_columns(draw=np.arange(draws).repeat(lengths.sum()))
        .group_by("draw", "example_id", maintain_order=True)
        .agg("surprisal", "entropy")
    )
