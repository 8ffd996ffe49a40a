"""`tracecal cascade`: what two models are worth together, from two files of labelled answers."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tracecal.answers.settings import Reading
from tracecal.calibration.calibrator import LABELS, FittedOn, default_estimator, undecided
from tracecal.calibration.cascades import (
    BELOW,
    BEST,
    KEPT_AT,
    LEAST_GAIN,
    ORACLE,
    RANDOM,
    answer_costs,
    cascade,
    routed,
)
from tracecal.calibration.fit import FitSettings, Labelled, calibrate_answers, labelled
from tracecal.calibration.guarantees import cascade_guarantee, error_level, paired_parts
from tracecal.calibration.predictions import calibrate_all, picks, probabilities, with_picked
from tracecal.cli.options import READING, add_options, ending, read_given
from tracecal.cli.output import printable
from tracecal.errors import InputError
from tracecal.estimators.entry import PICKED, TRACE_PLUS
from tracecal.estimators.registry import ESTIMATORS, entries
from tracecal.io.files import atomic_write, write_json
from tracecal.io.settings import parse

Price = Mapping[str, float]
SHOWN = {
    PICKED: "picked baseline",
    BEST: "best baseline",
    TRACE_PLUS: "TRACE+",
    RANDOM: "random",
    ORACLE: "oracle",
}


class Cascaded(NamedTuple):
    """`found` has the rows of `analyse.cascade.ROWS`; `stored` is the content of the small model's
    calibrator, of whose estimator `router` the key `cascade` holds the thresholds.
    """

    found: pl.DataFrame
    stored: dict[str, Any]
    router: str


def cascade_answers(
    small: pl.DataFrame,
    large: pl.DataFrame,
    settings: FitSettings,
    prices: Sequence[Price] | None = None,
    task: str = "cascade",
    vocabulary: int | None = None,
) -> Cascaded:
    """The cascade of two models that answered the same questions, matched by `example_id`.

    Both have the columns of `RECORDS`; questions that lack an answer or a label in one are left
    out. `prices` are those of the small and the large model, per million tokens. Raises
    `InputError` as `calibrate_answers`.
    """
    told = large.filter(pl.col("correct").is_not_null())
    both = small.join(told.select("example_id"), on="example_id", how="semi")
    if both.is_empty():
        raise InputError(
            "the two files share no question with a label in both: answers to one question need "
            "the same id. Give its path with --id."
        )
    known = labelled(both, task, settings)
    answers = _paired(known, small, told, prices)
    method = settings.calibration.method
    predictions, _ = calibrate_all(
        known.frame, known.splits, known.estimators, method, known.fits()
    )
    fits = calibrate_answers(both, task, settings, vocabulary=vocabulary)
    baselines = [e.id for e in ESTIMATORS if e.role == "baseline" and e.id in known.estimators]
    chosen = picks(known.frame, known.splits, known.estimators, fits, baselines)
    router = default_estimator(fits)
    compared = [name for name in known.estimators if name in (TRACE_PLUS, router)]
    routers = [*dict.fromkeys([*baselines, PICKED, *compared])]
    bootstrap = [settings.seed, settings.bootstrap.resamples, settings.bootstrap.level]
    own_routes = routed(
        answers, with_picked(predictions, chosen), known.splits, "cascade", routers, bootstrap
    )
    found = cascade({"cascade": own_routes}, baselines, settings.bootstrap.level)
    reasons = undecided(both, known.estimators[router], FittedOn(**fits["fitted_on"]))
    decided = both.filter(pl.Series(reasons, dtype=pl.String).is_null())["example_id"]
    seen, tested = paired_parts(_first_split(known, answers, router, fits[router], decided))
    control = settings.risk_control
    level = error_level(control.confidence)
    fits[router]["cascade"] = {
        "large": ", ".join(told["model"].drop_nulls().unique().sort()) or None,
        "confidence": control.confidence,
        "thresholds": [
            asdict(cascade_guarantee(seen, tested, *promise, level, control.largest_group))
            for promise in control.cascades.listed()
        ],
    }
    return Cascaded(found.filter(pl.col("task").is_null()), fits, router)


def _paired(
    known: Labelled, small: pl.DataFrame, large: pl.DataFrame, prices: Sequence[Price] | None
) -> pl.DataFrame:
    """`example_id`, `group_id` and the columns of `routed`; costs are NaN without prices."""
    frame = known.frame.select("example_id", "group_id")
    for place, (name, own) in enumerate((("small", small), ("large", large))):
        tokens = [
            own[column].list.len().cast(pl.Float64) for column in ("prompt_token_ids", "surprisal")
        ]
        paid = answer_costs(
            *(one.to_numpy() for one in tokens), prices[place] if prices else None, None
        )
        costs = np.full(len(own), np.nan) if paid is None else paid
        columns = own.select("example_id", pl.col("correct").alias(name)).with_columns(
            pl.Series(f"{name}_cost", costs)
        )
        frame = frame.join(columns, on="example_id", how="inner", validate="1:1")
    return frame


def _first_split(
    known: Labelled,
    answers: pl.DataFrame,
    router: str,
    fits: Mapping[str, Any],
    decided: pl.Series,
) -> pl.DataFrame:
    """`answers` in the first split, with the probability of its fit; null where there is none, or
    where a threshold does not hold for it: these are escalated.
    """
    columns = known.estimators[router]
    (probability,) = probabilities(known.frame.select(columns), [fits["splits"]["0"]])
    rated = known.frame.select("example_id", probability=pl.Series(probability).fill_nan(None))
    holds = pl.when(pl.col("example_id").is_in(decided.implode())).then("probability")
    return answers.join(
        rated.select("example_id", probability=holds), on="example_id", validate="1:1"
    ).join(known.first_split, on="example_id", validate="1:1")


def _names(cascaded: Cascaded) -> tuple[str, str]:
    """Of the small and the large model."""
    large = cascaded.stored[cascaded.router]["cascade"]["large"]
    return cascaded.stored["fitted_on"]["model"], large or "unnamed"


def summary(cascaded: Cascaded) -> str:
    """The table and the thresholds as lines of text for a terminal."""
    found, promised = cascaded.found, cascaded.stored[cascaded.router]["cascade"]
    facts = dict(found.filter(pl.col("router").is_null()).select("metric", "value").rows())
    small, large = _names(cascaded)
    n = found["n"][0]
    lines = [
        f"{n} questions: {small} is right on {facts['small_right']:.1%}, {large} on "
        f"{facts['large_right']:.1%}; {large} is wrong where {small} is right on "
        f"{facts['small_alone_right']:.1%}",
        "",
        f"{'routed by':20}{'area':>8}"
        + "".join(f"{f'gain at {at:.0%}':>14}" for at in KEPT_AT)
        + f"{'needed':>10}{'over random (area)':>26}",
    ]
    recommended = cascaded.router
    for router, label in ({recommended: LABELS[recommended]} | SHOWN).items():
        own = {row["metric"]: row for row in found.filter(router=router).iter_rows(named=True)}
        if "area" not in own:
            continue
        kept = [own[f"gain_kept_at_{100 * at:.0f}"]["value"] for at in KEPT_AT]
        lines.append(
            f"{label:20}{own['area']['value']:>8.3f}"
            + "".join(f"{'–' if one is None else f'{one:.0%}':>14}" for one in kept)
            + f"{own['needed']['value']:>10.0%}{_with_ends(own['area']):>26}"
        )
    lines += [
        "",
        "area: mean accuracy over all shares escalated; gain: share of the large model's, – where",
        f"that is less than {100 * LEAST_GAIN:g} points; needed: share escalated within "
        f"{100 * BELOW:g} point of it; best:",
        "in hindsight",
        "",
        f"Thresholds on {LABELS[cascaded.router]} with confidence {promised['confidence']:g}:",
    ]
    return "\n".join([*lines, *(f"  {told(one)}" for one in promised["thresholds"])])


def told(entry: Mapping[str, Any]) -> str:
    """A promise and its threshold in one sentence."""
    what = (
        f"at most {entry['promised']:g} below the large model's accuracy"
        if entry["promise"] == "below"
        else f"an accuracy of at least {entry['promised']:g}"
    )
    if entry["threshold"] is None:
        return f"{what}: none; {entry['reason']}"
    return (
        f"{what}: keep from {entry['threshold']:.3f}; escalates {entry['escalated']:.0%}, right on "
        f"{entry['accuracy']:.1%}"
    )


def _with_ends(row: Mapping[str, Any]) -> str:
    if row["over_random"] is None:
        return ""
    if row["over_random_low"] is None:
        return f"{row['over_random']:+.3f}"
    ends = f"{row['over_random_low']:+.3f}, {row['over_random_high']:+.3f}"
    return f"{row['over_random']:+.3f} [{ends}]"


def picture(cascaded: Cascaded, path: str | Path, named: str) -> None:
    """Draw accuracy against cost, or against the share escalated without prices.

    The suffix is .svg, .pdf or .png. Raises `InputError` where Matplotlib is missing.
    """
    suffix = Path(path).suffix
    try:
        from tracecal.apps import cost_and_accuracy, figure_style
    except ModuleNotFoundError as error:
        raise InputError(
            "a picture needs Matplotlib, which is not installed: pip install matplotlib, or leave "
            "out --picture."
        ) from error
    from tracecal.estimators.entry import Entry

    labels = dict(zip(("small", "large"), _names(cascaded), strict=True))
    found = cascaded.found.with_columns(small=pl.lit("small"), large=pl.lit("large"))
    shown = [Entry(**one) for one in entries(ESTIMATORS) if one["id"] in {*found["router"]}]
    figure = cost_and_accuracy.draw(found, shown, labels, named, every=True)
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}
    with figure_style.applied(), atomic_write(path) as part:
        figure.savefig(part, format=suffix[1:], metadata=dated[suffix])


def price(values: Sequence[float] | None) -> Price | None:
    """A price of prompts and answers, as two numbers."""
    return None if values is None else dict(zip(("prompt", "generated"), values, strict=True))


# The command `tracecal cascade`: its options, and what it prints and writes.


def add_cascade(command: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Add the command by the function with which the others are added."""
    cascade = command(
        "cascade",
        "tell what escalating a small model's answers to a large one is worth",
        "Both files hold labelled answers to the same questions, with the same ids. Prints a table "
        "and the thresholds from which to keep the small model's answers.",
    )
    cascade.add_argument("--small", required=True, help="answers of the small model, with traces")
    cascade.add_argument("--large", required=True, help="answers of the large model")
    for model in ("small", "large"):
        cascade.add_argument(
            f"--{model}-price",
            nargs=2,
            type=float,
            metavar=("PROMPT", "GENERATED"),
            help=f"of a million tokens of the {model} model's prompts and answers",
        )
    cascade.add_argument("--large-model", help="the large model's name; by default as in its file")
    cascade.add_argument("--task", default="cascade", help="a name for the task")
    cascade.add_argument(
        "--output", help="the small model's calibrator, with the thresholds: a JSON file"
    )
    cascade.add_argument(
        "--picture", type=ending(".svg", ".pdf", ".png"), help="a picture: .svg, .pdf or .png"
    )
    cascade.add_argument(
        "--config",
        help="YAML with seed, splits, calibration, risk_control, bootstrap",
    )
    add_options(cascade, Reading, READING)
    cascade.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from tracecal.io.input_files import read_yaml

    pass
    from tracecal.calibration.fit import FitSettings

    given = read_yaml(args.config) if args.config else None
    settings = parse(FitSettings, given or {}, args.config)
    prices = [price(values) for values in (args.small_price, args.large_price)]
    if prices.count(None) == 1:
        raise InputError("give prices of both models: --small-price and --large-price.")
    small, large = (
        read_given(argparse.Namespace(**vars(args) | {"answers": path, "model": model})).frame
        for path, model in ((args.small, args.model), (args.large, args.large_model))
    )
    found = cascade_answers(
        small,
        large,
        settings,
        None if None in prices else prices,
        args.task,
        int(args.vocabulary) if args.vocabulary else None,
    )
    if args.output:
        write_json(found.stored, args.output)
    if args.picture:
        picture(found, args.picture, "seq_logp")
    print(printable(summary(found)))
