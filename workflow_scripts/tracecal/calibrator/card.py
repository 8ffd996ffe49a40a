"""A calibrator's file as a calibration card: its schema (`card.schema.json`), what it says
in plain words, its page, and how two differ.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from tracecal.calibration.fits import Constant, Identity, Isotonic, Logistic, Mixture, Pooled
from tracecal.calibrator.report import guaranteed, guarantees, holding
from tracecal.calibrator.schema import (
    CARD_VERSION,
    LABELS,
    FittedOn,
    default_estimator,
    from_stored,
    kinds_of,
    stored_in,
    unfit_for,
)
from tracecal.errors import InputError
from tracecal.io.ownership import checksum_path
from tracecal.io.settings import parse
from tracecal.pages.page import render_page


class _Open(BaseModel):
    """Keys that a later version may add are ignored."""

    model_config = ConfigDict(extra="allow")


def _coefficients(kind: type) -> type[BaseModel]:
    """The model of one kind of fit, as `fits.as_json` stores it."""
    hints = get_type_hints(kind) | ({"fits": list["Coefficients"]} if kind is Mixture else {})
    fields = {name: (hint, ...) for name, hint in hints.items()}
    return create_model(
        kind.__name__,
        __config__=ConfigDict(extra="forbid"),
        __doc__=(kind.__doc__ or "").partition("\n")[0],
        __module__=__name__,
        kind=(Literal[kind.__name__.lower()], ...),
        **fields,
    )


KINDS = tuple(map(_coefficients, (Logistic, Isotonic, Constant, Identity, Mixture, Pooled)))
Coefficients = Annotated[Union[KINDS], Field(discriminator="kind")]  # noqa: UP007
Share = Annotated[float, Field(ge=0, le=1)]


class Threshold(_Open):
    """One target error rate, and what was observed of the tested answers."""

    error_rate: Share
    threshold: float | None = Field(description="the probability from which to keep; null: none")
    n: int = Field(description="answers tested")
    kept: int
    wrong: int = Field(description="of those kept")
    coverage: Share = Field(description="share kept")
    error: Share | None = Field(description="share wrong of the kept")


class Control(_Open):
    """Thresholds that hold for the fit of `split`: docs/reference/guarantee_fields.md."""

    split: int
    confidence: Share
    groups: int = Field(description="tested")
    largest_group: int = Field(description="with how many answers a group counts at most")
    about: str | None = Field(None, description="what the guarantees are about")
    thresholds: list[Threshold]
    risk_coverage: list[tuple[Share, Share]] = Field(
        [], description="pairs of share kept and share wrong of the kept, of the tested answers"
    )


class CascadeThreshold(_Open):
    """One guarantee of the accuracy of a cascade of two models."""

    promise: Literal["below", "at_least"]
    promised: Share
    threshold: float | None
    escalated: Share


class Cascade(_Open):
    """Thresholds from which the small model's answer is kept before the model `large` is asked."""

    large: str | None
    confidence: Share
    thresholds: list[CascadeThreshold]


class Fits(_Open):
    """One estimator: its inputs, and coefficients for them in this order."""

    features: list[str]
    final: Coefficients = Field(description="fitted on all labelled answers")
    splits: dict[str, Coefficients] = Field(description="fitted on the calibration part of each")
    risk_control: Control | None = None
    cascade: Cascade | None = None


class Card(_Open):
    """What was fitted on, and an estimator under each other key."""

    fitted_on: FittedOn
    __pydantic_extra__: dict[str, Fits]


def require_card(stored: Mapping[str, Any], where: str) -> None:
    """Raise `InputError`, with one sentence, where a file's content does not fit the schema, or is
    not of this version's features and estimators.
    """
    try:
        Card.model_validate(stored)
    except ValidationError as error:
        first, *others = error.errors()
        place = ".".join(str(step) for step in first["loc"])
        more = f", and {len(others)} further places are wrong" if others else ""
        raise InputError(
            f"{where} does not fit the schema of calibration cards: {place}: "
            f"{first['msg'].removeprefix('Value error, ')}{more}."
        ) from error
    from_stored(stored, None, where)


def checked(path: str | Path) -> str:
    """That a file is a card, in a sentence; raises as `stored_in` and `require_card`."""
    stored = stored_in(path)
    require_card(stored, str(path))
    summed = (
        "it matches its checksum" if checksum_path(path).exists() else "no checksum is beside it"
    )
    return (
        f"{path} is a calibration card of version {CARD_VERSION} with {len(stored) - 1} "
        f"estimators; {summed}."
    )


class Section(NamedTuple):
    """A heading, and a sentence or a value a line."""

    heading: str
    lines: list[str]


def title(stored: Mapping[str, Any]) -> str:
    """Whose card it is."""
    on = stored["fitted_on"]
    return f"Calibration card: {on['model'] or 'an unnamed model'} for {on['task']}"


def sections(stored: Mapping[str, Any], where: str) -> list[Section]:
    """What a card says, in plain words; raises `InputError` as `require_card`."""
    require_card(stored, where)
    on = parse(FittedOn, stored["fitted_on"], f"{where}: fitted_on")
    name = default_estimator(stored)
    fits = stored[name]
    groups = f" to {on.groups} questions" if on.groups else ""
    revision = f", revision {on.revision}" if on.revision else ", revision not known"
    also = f", also known as {', '.join(on.known_as)}" if on.known_as else ""
    told = [
        f"{on.n} labelled answers{groups}, {on.base_rate:.1%} correct",
        f"model: {on.model or 'not known'}{also}{revision}",
        f"kind of traces: {', '.join(kinds_of(on))}",
    ]
    told += [f"given: {_dates(on)}"] if on.dates else []
    told += [
        f"further column: {name} (at {path} in a row), larger: more trustworthy"
        for name, path in on.columns.items()
    ]
    told += [f"parts of answers: {', '.join(on.parts.names)}"] if on.parts else []
    others = len(stored) - 2
    recommended = [f"{LABELS[name]} ({name}), of {', '.join(fits['features'])}"]
    recommended += [f"further estimators in the file: {others}"] if others else []
    return [
        Section("Fitted on", told),
        Section("Recommended estimator", recommended),
        *_of_control(fits.get("risk_control")),
        *_of_cascade(fits.get("cascade")),
        Section("Not to be used for", list(unfit_for(on))),
    ]


def _dates(on: FittedOn) -> str:
    """When the answers were given."""
    return f"from {on.dates[0]} to {on.dates[1]} (UTC)" if on.dates else "not known when"


def _of_control(control: Mapping[str, Any] | None) -> list[Section]:
    if control is None:
        return [Section("Guarantees", ["none was tested"])]
    lines = [guaranteed(row).strip() for row in guarantees(control).iter_rows(named=True)]
    lines.append(f"{holding(control)}, by {control['groups']} tested questions")
    lines += [f"about {control['about']}"] if "about" in control else []
    curve = [
        f"keeping {kept:.0%}: {wrong:.1%} of the kept are wrong"
        for kept, wrong in control.get("risk_coverage", ())
    ]
    heading = "Risk against coverage, of answers that the fit had not seen"
    return [Section(heading, curve)] * bool(curve) + [Section("Guarantees", lines)]


def _of_cascade(cascade: Mapping[str, Any] | None) -> list[Section]:
    if cascade is None:
        return []
    large = cascade["large"] or "the larger model"
    return [
        Section(
            f"Guarantees of a cascade with {large}, each with confidence {cascade['confidence']:g}",
            [_guarantee(one, large) for one in cascade["thresholds"]],
        )
    ]


def _guarantee(one: Mapping[str, Any], large: str) -> str:
    what = {
        "below": f"right at most {one['promised']:.1%} less often than {large}",
        "at_least": f"right in at least {one['promised']:.1%}",
    }[one["promise"]]
    if one["threshold"] is None:
        return f"{what}: cannot be guaranteed"
    return f"{what}: {one['escalated']:.0%} of the questions are asked again"


def text(stored: Mapping[str, Any], where: str) -> str:
    """The card for a terminal."""
    lines = [title(stored)]
    for section in sections(stored, where):
        lines += ["", section.heading, *(f"  {line}" for line in section.lines)]
    return "\n".join(lines)


def page(stored: Mapping[str, Any], where: str) -> str:
    """The card as a page that loads nothing and runs nothing."""
    return render_page(
        Path(__file__).with_name("card.html"), title(stored), sections=sections(stored, where)
    )


def compared(one: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]) -> str:
    """What differs between two cards, for a terminal; raises `InputError` as `require_card`."""
    for card, where in zip((one, other), names, strict=True):
        require_card(card, where)
    sides = [
        parse(FittedOn, card["fitted_on"], f"{where}: fitted_on")
        for card, where in zip((one, other), names, strict=True)
    ]
    differing = [
        Section("Data", _data(*sides)),
        Section("Recommended estimator", _each(map(default_estimator, (one, other)))),
        Section("Coefficients", _estimators(one, other)),
        Section("Guarantees of the recommended estimators", _guarantees(one, other)),
    ]
    lines = [f"{names[0]} -> {names[1]}"]
    for section in differing:
        lines += ["", section.heading, *(f"  {line}" for line in section.lines or ["the same"])]
    return "\n".join(lines)


def _each(pair: Any, what: str = "") -> list[str]:
    """Two values as a line; none where they are equal."""
    first, second = pair
    return [] if first == second else [f"{what}{first} -> {second}"]


# Fields of `FittedOn` that are told otherwise, or are no data.
TOLD = {"answers", "not_for", "ranking", "estimator", "gain", "parts", "dates"}


def _data(one: FittedOn, other: FittedOn) -> list[str]:
    lines = []
    for name in FittedOn.model_fields:
        if name not in TOLD:
            lines += _each((getattr(one, name), getattr(other, name)), f"{name}: ")
    lines += _each(map(_dates, (one, other)), "given: ")
    parts = [", ".join(on.parts.names) if on.parts else "whole answers" for on in (one, other)]
    lines += _each(parts, "parts: ")
    if one.answers != other.answers:
        shared = len({*one.answers} & {*other.answers})
        lines.append(f"labelled answers in both: {shared}")
    return lines


def _estimators(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    kept = [name for name in one if name in other and name != "fitted_on"]
    lines = [f"only in the first: {name}" for name in one if name not in other]
    lines += [f"only in the second: {name}" for name in other if name not in one]
    changed = [name for name in kept if one[name]["final"] != other[name]["final"]]
    if changed:
        lines.append(f"{len(changed)} of {len(kept)} estimators have other ones")
    name = default_estimator(one)
    if name in changed and name == default_estimator(other):
        lines += _changes(one[name], other[name])
    return lines


def _changes(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """How the coefficients of one estimator differ, by input where both are logistic."""
    fits = [fits["final"] for fits in (one, other)]
    if {fit["kind"] for fit in fits} != {"logistic"} or one["features"] != other["features"]:
        return _each((fit["kind"] for fit in fits), "kind of fit: ")
    names = ["intercept", *one["features"]]
    values = zip(*([fit["intercept"], *fit["weights"]] for fit in fits), strict=True)
    shown = ([f"{value:.3g}" for value in pair] for pair in values)
    return [
        line for name, pair in zip(names, shown, strict=True) for line in _each(pair, f"{name}: ")
    ]


def _guarantees(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    sides = [_kept(card[default_estimator(card)]) for card in (one, other)]
    lines = []
    for target in dict.fromkeys([*sides[0], *sides[1]]):
        lines += _each((side.get(target, "not tested") for side in sides), f"{target}: ")
    return lines


def _kept(fits: Mapping[str, Any]) -> dict[str, str]:
    """What is kept at each target; and the terms that all of them share."""
    control, cascade = fits.get("risk_control"), fits.get("cascade")
    kept = {}
    if control:
        kept["terms"] = holding(control)
        for row in guarantees(control).iter_rows(named=True):
            target, _, found = guaranteed(row).strip().partition(": ")
            kept[target] = found or "cannot be guaranteed"
    for row in cascade["thresholds"] if cascade else ():
        large = cascade["large"] or "the larger model"
        target, _, found = _guarantee(row, large).rpartition(": ")
        kept[target] = found
    return kept
