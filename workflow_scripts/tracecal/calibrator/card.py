"""A calibrator's file in plain words, as text and as a page.

1. `card = Card.of(file)` says what was fitted on, what is guaranteed, and what it is not for.
2. `print(card)` shows it, `card.save("card.html")` writes the page.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from tracecal.calibrator.catalogue import LABELS
from tracecal.calibrator.guarantee_text import (
    describe_chance,
    describe_looks,
    describe_overall,
    describe_recall,
    describe_terms,
    guarantee_line,
)
from tracecal.calibrator.page_frame import render_page
from tracecal.calibrator.predictor import make_predictor
from tracecal.calibrator.report_pictures import axes, draw_risk
from tracecal.calibrator.schema import (
    CARD_VERSION,
    CalibrationData,
    CalibratorFile,
    ErrorRateControl,
)
from tracecal.io.regular_files import write_text
from tracecal.statistics.percentages import percent, rate_text

TEMPLATE = Path(__file__).with_name("card.html")


class Section(NamedTuple):
    """A heading, and a sentence or a value a line; the page draws a `picture` in their place."""

    heading: str
    lines: list[str]
    picture: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Card:
    """What a calibrator's file holds, in plain words: `text` (as `str`), and the page `html`."""

    title: str
    sections: tuple[Section, ...]

    @classmethod
    def of(cls, file: CalibratorFile) -> Self:
        """Word a calibrator's file."""
        fitted_on, name = file.fitted_on, file.recommended()
        estimator = file.estimators[name]
        recommended = [f"{LABELS[name]} ({name})", f"inputs: {', '.join(estimator.features)}"]
        if n_others := len(file.estimators) - 1:
            recommended.append(f"further estimators in the file: {n_others}")
        return cls(
            f"Calibration card: {fitted_on.model or 'an unnamed model'} for {fitted_on.task}",
            (
                Section("Fitted on", _data_lines(fitted_on)),
                Section("Recommended estimator", recommended),
                *_control_sections(estimator.risk_control, fitted_on),
                Section("Not to be used for", list(fitted_on.exclusions())),
            ),
        )

    @property
    def text(self) -> str:
        """The card for a terminal."""
        lines = [self.title]
        for section in self.sections:
            lines += ["", section.heading, *(f"  {line}" for line in section.lines)]
        return "\n".join(lines)

    @property
    def html(self) -> str:
        """The card as a page that loads nothing and runs nothing."""
        return render_page(TEMPLATE, self.title, sections=self.sections, **axes())

    def __str__(self) -> str:
        return self.text

    def save(self, path: str | Path) -> None:
        """Write the page."""
        write_text(self.html, path)


def verify(path: str | Path) -> str:
    """Say in a sentence that a file is a card; raises `InputError` where it is none."""
    file = CalibratorFile.read(path)
    make_predictor(file, None, str(path))  # refuses inputs of another version
    checksum = "it matches its checksum" if file.fitted_on.checksum else "it holds no checksum"
    return (
        f"{path} is a calibration card of version {CARD_VERSION} with {len(file.estimators)} "
        f"estimators; {checksum}."
    )


def _data_lines(fitted_on: CalibrationData) -> list[str]:
    groups = f" to {fitted_on.groups} questions" if fitted_on.groups else ""
    revision = fitted_on.revision
    known_as = f", also known as {', '.join(fitted_on.known_as)}" if fitted_on.known_as else ""
    lines = [
        f"{fitted_on.n} labelled answers{groups}, {percent(fitted_on.base_rate, 1)} right",
        f"model: {fitted_on.model or 'not known'}{known_as}"
        + (f", revision {revision}" if revision else ", revision not known"),
        f"kind of traces: {', '.join(fitted_on.trace_kinds())}",
    ]
    lines[1:1] = filter(None, [fitted_on.describe_repeats(), fitted_on.describe_missing()])
    if fitted_on.dates:
        lines.append("answered: from {} to {} (UTC)".format(*fitted_on.dates))
    lines += [
        f"further column: {name} (at {path} in a row), larger: more trustworthy"
        for name, path in fitted_on.columns.items()
    ]
    if fitted_on.parts:
        lines.append(f"parts of answers: {', '.join(fitted_on.parts.names)}")
    return lines


def _control_sections(control: ErrorRateControl | None, data: CalibrationData) -> list[Section]:
    if control is None:
        return [Section("Guarantees", ["none was tested"])]
    lines = [guarantee_line(entry) for entry in control.thresholds]
    overall = describe_overall(control, data.base_rate)
    lines += [line.strip().replace("      ", "; ") for line in overall]
    lines += filter(None, [describe_recall(control)])
    terms = describe_terms(control)
    lines.append(f"the error rates hold {terms}, by {control.groups} tested questions")
    lines += [describe_chance(control), *filter(None, [describe_looks(control, data)])]
    lines.append(f"answers are ranked by {LABELS[control.ranked_by]}")
    if control.about is not None:
        lines.append(f"about {control.about}")
    if control.by is not None:
        lines += [
            f"by {control.by.column}, at most {rate_text(row.error_rate)} wrong: {row.value}: "
            f"{row.wrong} wrong of {row.kept} kept, of {row.n} that tested"
            for row in control.by.values
        ]
    curve = [
        f"keeping {percent(coverage)}: {percent(wrong, 1)} of the kept are wrong"
        for coverage, wrong in control.risk_coverage
    ]
    heading = "Errors where the least certain are dropped or checked, on answers unseen by the fit"
    pictures = [Section(heading, curve, draw_risk(control))] if curve else []
    return [*pictures, Section("Guarantees", lines)]
