"""`tracecal cascade`: what escalating to a large model is worth, by labelled answers of both."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracecal.cli.options import (
    AsRead,
    Config,
    command,
    ending,
    read_given,
    require_installed,
)
from tracecal.errors import InputError
from tracecal.io.log import printable
from tracecal.io.settings import parse

if TYPE_CHECKING:
    from tracecal.calibration.fit import Cascaded

PRICES = "Prices of a million tokens"
Price = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="PROMPT GENERATED", rich_help_panel=PRICES),
]


@command(
    "know what escalating to a large model is worth",
    "tracecal cascade --small small.jsonl --large large.jsonl --picture cascade.svg",
)
def cascade(
    small: Annotated[str, typer.Option(help="answers of the small model, with traces")],
    large: Annotated[str, typer.Option(help="answers of the large model")],
    reading: AsRead,
    output: Annotated[
        str | None,
        typer.Option(help="the small model's calibrator, with the thresholds: a JSON file"),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(callback=ending(".svg", ".pdf", ".png"), help="a picture: .svg, .pdf or .png"),
    ] = None,
    large_model: Annotated[
        str | None, typer.Option(help="the large model's name; by default as in its file")
    ] = None,
    task: Annotated[str, typer.Option(help="a name for the task")] = "cascade",
    config: Config = None,
    small_price: Price = None,
    large_price: Price = None,
) -> None:
    """Say what escalating a small model's answers to a large one is worth.

    Both files hold labelled answers to the same questions, with the same ids. Prints a table, and
    the thresholds from which the small model's answers are kept, with what each guarantees. How
    files are read, such as where their ids are: 'tracecal reading'.
    """
    if picture:
        require_installed("--picture", "pictures", "matplotlib")
    if Path(small).resolve() == Path(large).resolve():
        raise InputError(
            f"--small and --large are both {small}: a cascade is of two models, so give the "
            "answers of another one as --large."
        )
    if (small_price is None) != (large_price is None):
        raise InputError("give prices of both models: --small-price and --large-price.")
    from tracecal.calibration.fit import FitSettings, cascade_answers
    from tracecal.io.files import write_json
    from tracecal.io.input_files import read_yaml

    settings = parse(FitSettings, (read_yaml(config) if config else None) or {}, config)
    named = reading.model_copy(update={"model": large_model})
    frames = read_given(small, reading).frame, read_given(large, named).frame
    prices = None
    if small_price and large_price:
        prices = [{"prompt": one[0], "generated": one[1]} for one in (small_price, large_price)]
    found = cascade_answers(*frames, settings, prices, task, reading.vocabulary)
    if output:
        write_json(found.stored, output)
    if picture:
        draw(found, picture, "seq_logp")
    print(printable(summary(found)))


def _names(cascaded: "Cascaded") -> tuple[str, str]:
    """Of the small and the large model."""
    large = cascaded.stored[cascaded.router]["cascade"]["large"]
    return cascaded.stored["fitted_on"]["model"] or "unnamed", large or "unnamed"


def summary(cascaded: "Cascaded") -> str:
    """The table and the thresholds as lines of text for a terminal."""
    from tracecal.calibration.calibrator import LABELS
    from tracecal.calibration.cascades import BELOW, BEST, KEPT_AT, LEAST_GAIN, ORACLE, RANDOM
    from tracecal.estimators.entry import PICKED, TRACE_PLUS

    shown = {
        PICKED: "selected baseline",
        BEST: "best baseline",
        TRACE_PLUS: "TRACE+",
        RANDOM: "random",
        ORACLE: "oracle",
    }
    found, promised = cascaded.found, cascaded.stored[cascaded.router]["cascade"]
    facts = dict(found.filter(found["router"].is_null()).select("metric", "value").rows())
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
    for router, label in ({recommended: LABELS[recommended]} | shown).items():
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
        f"{100 * BELOW:g} point of it;",
        "selected: on the calibration data; best: in hindsight, which nobody could have chosen",
        "",
        f"Thresholds on {LABELS[cascaded.router]} with confidence {promised['confidence']:g}:",
    ]
    return "\n".join([*lines, *(f"  {told(one)}" for one in promised["thresholds"])])


def told(entry: Mapping[str, Any]) -> str:
    """A guarantee and its threshold in one sentence."""
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


def draw(cascaded: "Cascaded", path: str | Path, named: str) -> None:
    """Draw accuracy against cost, or against the share escalated without prices.

    The suffix is .svg, .pdf or .png.
    """
    import polars as pl

    from tracecal.apps import cost_and_accuracy, figure_style
    from tracecal.estimators.entry import Entry
    from tracecal.estimators.registry import ESTIMATORS, entries
    from tracecal.io.files import atomic_write

    suffix = Path(path).suffix
    labels = dict(zip(("small", "large"), _names(cascaded), strict=True))
    found = cascaded.found.with_columns(small=pl.lit("small"), large=pl.lit("large"))
    shown = [Entry(**one) for one in entries(ESTIMATORS) if one["id"] in {*found["router"]}]
    figure = cost_and_accuracy.draw(found, shown, labels, named, every=True)
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}
    with figure_style.applied(), atomic_write(path) as part:
        figure.savefig(part, format=suffix[1:], metadata=dated[suffix])
