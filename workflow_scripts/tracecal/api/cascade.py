"""What escalating to a large model is worth, by labelled answers of both."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.answers.reading import Reading
from tracecal.answers.sources import Answers, answers_in
from tracecal.calibration.cascade import BELOW, BEST, KEPT_AT, LEAST_GAIN
from tracecal.calibration.routing import ORACLE, RANDOM
from tracecal.calibrator.calibrator import Calibrator, settings_in
from tracecal.calibrator.fitting import cascade_answers
from tracecal.calibrator.schema import LABELS
from tracecal.errors import InputError
from tracecal.estimators.entry import PICKED, TRACE_PLUS, Entry, entries
from tracecal.estimators.registry import ESTIMATORS
from tracecal.io.files import atomic_write

SHOWN = {
    PICKED: "selected baseline",
    BEST: "best baseline",
    TRACE_PLUS: "TRACE+",
    RANDOM: "random",
    ORACLE: "oracle",
}


@dataclass(frozen=True)
class Cascade:
    """What escalating a small model's answers to a large one is worth.

    `table` has a row per ``router`` and ``metric``, with intervals. `calibrator` is the small
    model's, by whose guarantees `Calibrator.score` keeps answers (``promise``). `str` gives what
    `tracecal cascade` prints.
    """

    table: pl.DataFrame = field(repr=False)
    calibrator: Calibrator

    def __str__(self) -> str:
        return _summary(self)

    def picture(self, path: str | Path) -> None:
        """Draw accuracy against cost, or against the share escalated without prices.

        The suffix is .svg, .pdf or .png. Needs the extra ``pictures``.
        """
        from tracecal.pages import cost_and_accuracy, figure_style

        suffix = Path(path).suffix
        labels = dict(zip(("small", "large"), _names(self), strict=True))
        found = self.table.with_columns(small=pl.lit("small"), large=pl.lit("large"))
        shown = [Entry(**one) for one in entries(ESTIMATORS) if one["id"] in {*found["router"]}]
        figure = cost_and_accuracy.draw(found, shown, labels, "seq_logp", every=True)
        dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}
        if suffix not in dated:
            raise InputError(f"{path}: expected a name that ends in {', '.join(dated)}.")
        with figure_style.applied(), atomic_write(path) as part:
            figure.savefig(part, format=suffix[1:], metadata=dated[suffix])


Price = tuple[float, float]


def cascade(
    small: Answers,
    large: Answers,
    *,
    task: str = "cascade",
    config: str | Path | Mapping[str, Any] | None = None,
    large_model: str | None = None,
    small_price: Price | None = None,
    large_price: Price | None = None,
    reading: Reading | None = None,
) -> Cascade:
    """Say what escalating to a large model is worth, as ``tracecal cascade``.

    Parameters
    ----------
    small, large : path, frame or rows
        As of `read_answers`: labelled answers of two models to the same questions, with the same
        ids. Those of the small one have traces.
    task : str
        A name for the task.
    config : path or mapping, optional
        As of `calibrate`; ``risk_control.cascades`` are the guarantees to test.
    large_model : str, optional
        The large model's name; by default as its answers state it.
    small_price, large_price : pair of float, optional
        Of a million tokens of the prompt, and of a million that are generated.
    reading : Reading, optional
        How both are read; ``model`` names the small one.

    Returns
    -------
    tracecal.api.cascade.Cascade
        Its ``table``, the small model's ``calibrator`` with the guarantees, and ``picture``.

    Raises
    ------
    InputError
        Where the two share no question with a label in both, or only one price is given; and as
        `calibrate`.

    Examples
    --------
    >>> import tracecal
    >>> found = tracecal.cascade("small.jsonl", "large.jsonl")
    >>> sorted(found.calibrator.fitted().thresholds, key=str)[-3:]
    ['below:0.01', 'below:0.02', 'below:0.05']
    >>> scored = found.calibrator.score("new.jsonl", guarantee="below:0.05")
    """
    if (small_price is None) != (large_price is None):
        raise InputError("give prices of both models: --small-price and --large-price.")
    paths = [Path(one).resolve() for one in (small, large) if isinstance(one, str | Path)]
    if len(paths) > len({*paths}):
        raise InputError(
            f"--small and --large are both {small}: a cascade is of two models, so give the "
            "answers of another one as --large."
        )
    settings = settings_in(config)
    reading = reading or Reading()
    of_small = answers_in(small, reading).frame
    of_large = answers_in(large, reading.model_copy(update={"model": large_model})).frame
    prices = None
    if small_price and large_price:
        prices = [{"prompt": one[0], "generated": one[1]} for one in (small_price, large_price)]
    how = settings, prices, task, reading.vocabulary
    found = cascade_answers(of_small, of_large, *how)
    return Cascade(found.found, Calibrator(json.loads(json.dumps(found.stored))))


def _names(found: Cascade) -> tuple[str, str]:
    """Of the small and the large model."""
    fitted = found.calibrator.fitted()
    return fitted.fitted_on.model or "unnamed", fitted.large or "unnamed"


def _summary(cascaded: Cascade) -> str:
    """The table and the thresholds as lines of text for a terminal."""
    found, recommended = cascaded.table, cascaded.calibrator.recommended
    promised = cascaded.calibrator.content[recommended]["cascade"]
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
        f"{100 * BELOW:g} point of it;",
        "selected: on the calibration data; best: in hindsight, which nobody could have chosen",
        "",
        f"Thresholds on {LABELS[recommended]} with confidence {promised['confidence']:g}:",
    ]
    return "\n".join([*lines, *(f"  {_told(one)}" for one in promised["thresholds"])])


def _told(entry: Mapping[str, Any]) -> str:
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
