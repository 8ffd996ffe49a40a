"""A check of a guarantee with the labels of new answers: `tracecal.check`.

1. `check(answers, calibrator, error_rate)` tests the labels of the answers that are kept, or for an
   overall error rate those of all, and compares all answers with the calibration's.
2. `Check.exit_code` is what `tracecal check` ends with; `save` writes JUnit XML or JSON.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import polars as pl

from tracecal.answers.answers import Answers, Source
from tracecal.answers.groups import content_hashes, group_answers, place_answers, question_keys
from tracecal.answers.reading import Reading
from tracecal.calibrator.calibrator import Calibrator, calibrator_in
from tracecal.calibrator.guarantee_text import describe_target
from tracecal.calibrator.predictor import target_of
from tracecal.calibrator.schema import Reference
from tracecal.calibrator.scoring import categories, score_source, warn_of_missing
from tracecal.calibrator.trace_kinds import KNOWN_ANSWER, require_parts
from tracecal.calibrator.training_set import random_labels
from tracecal.errors import InputError
from tracecal.fits.fit_settings import stated_shares
from tracecal.guarantees.line import significance_level
from tracecal.io.digests import hash_of
from tracecal.io.log import LOGGER
from tracecal.io.randomness import seeded
from tracecal.io.regular_files import write_text
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.messages import long_name
from tracecal.monitoring.state import AlarmSettings, initial_state, watch
from tracecal.monitoring.traffic import batch_of_scored
from tracecal.statistics.percentages import confidence_text, percent, rate_text
from tracecal.statistics.rate_test import KeptAnswers, enough_answers

CONFIDENCE = 0.95
# The guarantee fits where labels rule out an error rate this many times the guaranteed one.
EXCESS = 1.5
LEAST_PER_ALARM = 100  # answers, of the monitors
EXIT_CODES = {"fits": 0, "contradicted": 3, "too few": 4}
ALARM_CODE = 3
Verdict = Literal["fits", "contradicted", "too few"]


@dataclass(frozen=True)
class Check:
    """What labels of new answers say of a guarantee.

    Attributes
    ----------
    verdict : str
        ``"fits"``, ``"contradicted"`` or ``"too few"``: what the labels say.
    unlike : tuple of str
        In what the answers are unlike the calibration's: an alarm of the monitors of each.
    n_compared : int
        The calibration's answers to compare with; without any there is no alarm.
    n_answers, n_undecided, n_kept : int
        Answers in all, those without a decision, and those that are kept.
    n_labelled, n_unsure, n_wrong : int
        Kept answers with a label (all new answers with one, for an overall error rate), kept ones
        whose label is unsure, and kept ones that are wrong, unsure ones among them.
    error_rate, confidence : float
        As given; for an overall error rate, that.
    enough : int or None
        How many labelled kept answers (or answers, for an overall error rate), one of each
        question, may be enough where labels are too few; None otherwise, or where far more are
        needed.
    n_counted : int
        The labelled answers that the verdict counts: one of each question, or all where the
        guarantee counts answers.
    overall : bool
        Whether the guarantee is of an overall error rate.
    only_kept : bool
        Whether only kept answers have labels, although some are not kept: these say nothing of an
        overall error rate.
    """

    verdict: Verdict
    unlike: tuple[str, ...]
    n_compared: int
    n_answers: int
    n_undecided: int
    n_kept: int
    n_labelled: int
    n_unsure: int
    n_wrong: int
    error_rate: float
    confidence: float
    enough: int | None
    n_counted: int
    overall: bool = False
    only_kept: bool = False

    @property
    def exit_code(self) -> int:
        """0 where the guarantee fits, 3 where it does not, 4 where labels are too few to tell."""
        return ALARM_CODE if self.unlike else EXIT_CODES[self.verdict]

    @property
    def counts_line(self) -> str:
        """How many answers are kept, labelled and wrong."""
        undecided = f" ({self.n_undecided:,} have no decision)" if self.n_undecided else ""
        of_all, these = (" of all", "") if self.overall else ("", " of these")
        line = (
            f"{self.n_answers:,} answers{undecided}, {self.n_kept:,} kept for at most "
            f"{rate_text(self.error_rate)}{of_all} wrong; "
        )
        if not self.n_labelled:
            return f"{line}none of these has a label."
        unsure = f"; {self.n_unsure:,} unsure among them" if self.n_unsure else ""
        counted = (
            f" One of each question counts: {self.n_counted:,}."
            if self.n_counted < self.n_labelled
            else ""
        )
        share = percent(self.n_wrong / self.n_labelled)
        return (
            f"{line}{self.n_labelled:,}{these} have labels, {self.n_wrong:,} "
            f"{'kept and ' if self.overall else ''}wrong "
            f"({share}{unsure}).{counted}"
        )

    @property
    def labels_line(self) -> str:
        """What the labels say of the guarantee."""
        rate, excess = rate_text(self.error_rate), rate_text(excess_rate(self.error_rate))
        what = "all are kept and wrong" if self.overall else "the kept are wrong"
        if self.only_kept:
            return (
                "Only kept answers have labels, which say nothing about an overall error rate: "
                "label a random sample of all answers."
            )
        if self.verdict == "fits":
            return (
                f"The guarantee fits the labels: they rule out {excess} wrong "
                f"{confidence_text(self.confidence)}."
            )
        if self.verdict == "contradicted":
            return (
                f"The labels contradict the guarantee: more than {rate} of {what} "
                f"{confidence_text(self._half_confidence)}."
            )
        number = "far more" if self.enough is None else f"about {self.enough:,}"
        return (
            f"Too few labels to tell: they rule out neither {rate} nor {excess} wrong; {number} "
            f"labelled {'' if self.overall else 'kept '}answers may be enough."
        )

    @property
    def traffic_line(self) -> str:
        """Whether the answers are like the calibration's."""
        if self.unlike:
            return (
                f"ALARM: unlike the calibration's answers in {', '.join(self.unlike)} "
                f"{confidence_text(self._half_confidence)}."
            )
        if not self.n_compared:
            return "The calibrator holds no answers to compare these with: calibrate again."
        return f"No alarm: they look like {self.n_compared:,} answers of the calibration."

    @property
    def _half_confidence(self) -> float:
        """Labels and alarms share the chance to be wrong."""
        return (1 + self.confidence) / 2

    def __str__(self) -> str:
        return "\n".join((self.counts_line, self.labels_line, self.traffic_line))

    def save(self, path: str | Path) -> None:
        """Write the result as JUnit XML or JSON, by the name's ending.

        Parameters
        ----------
        path : path
            A name that ends in .xml or .json.

        Raises
        ------
        InputError
            For another ending.

        Examples
        --------
        >>> import tracecal
        >>> result = tracecal.check("labelled.jsonl", "C.json", 0.3)
        >>> result.save("check.xml")
        """
        writers = {".xml": self._as_junit, ".json": self._as_json}
        if (writer := writers.get(Path(path).suffix)) is None:
            raise InputError(f"{path}: expected a name that ends in .xml or .json.")
        write_text(writer(), path)

    def _as_json(self) -> str:
        content = asdict(self) | {"exit_code": self.exit_code, "text": str(self)}
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    def _as_junit(self) -> str:
        """A suite of two cases: what the labels say, and what the answers look like."""
        elements = {"fits": "", "contradicted": "failure", "too few": "error"}
        problems = {"labels": elements[self.verdict], "answers": "failure" * bool(self.unlike)}
        counts = {
            f"{kind}s": str([*problems.values()].count(kind)) for kind in ("failure", "error")
        }
        root = ElementTree.Element("testsuites")
        suite = ElementTree.SubElement(
            root, "testsuite", name="tracecal check", tests=str(len(problems)), **counts
        )
        lines = {"labels": self.labels_line, "answers": self.traffic_line}
        for name, problem in problems.items():
            case = ElementTree.SubElement(suite, "testcase", classname="tracecal.check", name=name)
            if problem:
                ElementTree.SubElement(case, problem, message=lines[name])
        ElementTree.SubElement(suite, "system-out").text = str(self)
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def check(
    answers: Source,
    calibrator: str | Path | Calibrator,
    error_rate: float | None = None,
    *,
    overall_error: float | None = None,
    confidence: float = CONFIDENCE,
    estimator: str | None = None,
    task: str | None = None,
    reading: Reading | None = None,
) -> Check:
    """Say whether a guarantee fits the labels of new answers.

    Labels are of kept answers drawn at random, or of all. The labels contradict the guarantee where
    more are wrong than it allows, by chance alone in at most half of 1 - ``confidence`` of all
    checks; alarms of `Monitors` come by chance in at most the other half. The guarantee fits where
    labels rule out one and a half times its error rate. One kept answer of each question counts,
    or each answer where the guarantee is about answers drawn one by one. For an overall error rate
    labels are of all answers, drawn at random; those that are kept and wrong count. Answers on
    which the calibrator was fitted count nowhere.

    Parameters
    ----------
    answers : path, frame or rows
        New answers, some of them labelled, in any format that `read_answers` reads.
    calibrator : path or Calibrator
        The calibrator whose guarantee is checked.
    error_rate : float, optional
        Guaranteed error rate of the answers to keep, one that the calibrator was tested for.
    overall_error : float, optional
        Instead: a guaranteed overall error rate.
    confidence : float
        A true guarantee is contradicted, or alarms are raised, in at most 1 - ``confidence`` of the
        checks, and a guarantee one and a half times exceeded fits in at most as many.
    estimator : str, optional
        One of the calibrator's; by default the recommended one.
    task : str, optional
        The calibrator's task, where the answers name it otherwise.
    reading : Reading, optional
        How a path or rows are read; ``labels`` names a file of verdicts.

    Returns
    -------
    tracecal.monitoring.check.Check
        What the labels say (``verdict``), in what answers are ``unlike`` the calibration's, counts,
        and the ``exit_code`` of the command.

    Raises
    ------
    InputError
        Where nothing is guaranteed at the rate, not exactly one is given, no answer has a label, or
        a rate is out of range; otherwise as `Calibrator.score`.

    Examples
    --------
    >>> import tracecal
    >>> result = tracecal.check("labelled.jsonl", "C.json", 0.3)
    >>> result.verdict, result.exit_code
    ('too few', 4)
    """
    rate = overall_error if error_rate is None else error_rate
    target = target_of(error_rate, overall_error)
    if target is None or rate is None:
        raise InputError("name the guarantee to check: --error-rate or --overall-error.")
    stated_shares("--confidence", [confidence])
    calibrator = calibrator_in(calibrator)
    predictor = calibrator.predictor(estimator)
    require_parts(predictor.fitted_on, False)
    if (reason := predictor.why_not(target)) is not None:
        raise InputError(f"there is no guarantee to check at {rate:g}: {reason}.")

    def keep(some: Answers, scored: pl.DataFrame) -> pl.DataFrame:
        frame = some.frame
        batch = pl.DataFrame(vars(batch_of_scored(frame, scored, predictor))).to_struct("batch")
        decision = scored.select("probability", "keep", categories("reason"))
        keys = *question_keys(frame), *content_hashes(frame)
        return frame.select("unsure", "asked_for").hstack([*decision, batch, *keys])

    source = score_source(answers, calibrator.reading(reading), predictor, target, task, keep)
    frame = random_labels(source.frame)
    if (sentence := describe_target(predictor.control, target)) is not None:
        LOGGER.info("%s", sentence)
    if not frame["correct"].count():
        raise InputError(
            f"{source.source}: no answer has a label: name a file of verdicts with --labels."
        )
    warn_of_missing(frame, decided=True)
    decided = frame.select("example_id", "correct", "unsure", pl.col("keep").fill_null(False))
    decided = decided.filter(frame["reason"].ne_missing(KNOWN_ANSWER))
    is_overall, has_label = overall_error is not None, pl.col("correct").is_not_null()
    labelled = decided.filter(has_label & (pl.lit(is_overall) | pl.col("keep")))
    is_kept_wrong = pl.col("keep") & ~pl.col("correct")
    counted, compared = labelled, frame
    if predictor.fitted_on.unit == "questions":
        groups = group_answers(frame)
        counted, compared = (one_of_each(rows, frame, groups) for rows in (counted, frame))
    is_all_kept = labelled.height > 0 and labelled["keep"].all()
    only_kept = is_overall and is_all_kept and not decided["keep"].all()
    kept_answers = KeptAnswers(counted.height, counted.filter(is_kept_wrong).height)
    level = significance_level(confidence)
    tested = rate, excess_rate(rate), level / 2, level
    verdict: Verdict = "too few"
    if not only_kept and kept_answers.contradicts(rate, level / 2):
        verdict = "contradicted"
    elif not only_kept and kept_answers.rules_out(excess_rate(rate), level):
        verdict = "fits"
    batch = Batch(*(values.to_numpy() for values in compared["batch"].struct.unnest()))
    reference = predictor.reference
    return Check(
        verdict=verdict,
        unlike=find_unlike(batch, reference, level / 2, hash_of("\n".join(frame["example_id"]))),
        n_compared=len(reference.probability),
        n_answers=frame.height,
        n_undecided=frame["keep"].null_count(),
        n_kept=int(decided["keep"].sum()),
        n_labelled=labelled.height,
        n_unsure=labelled.filter("keep", "unsure").height,
        n_wrong=labelled.filter(is_kept_wrong).height,
        error_rate=rate,
        confidence=confidence,
        enough=enough_answers(kept_answers, *tested)
        if verdict == "too few" and not only_kept
        else None,
        n_counted=counted.height,
        overall=is_overall,
        only_kept=only_kept,
    )


def excess_rate(error_rate: float) -> float:
    """The error rate that labels rule out where a guarantee fits them, below 1."""
    return round(min(EXCESS * error_rate, (1 + error_rate) / 2), 12)


def one_of_each(rows: pl.DataFrame, answers: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The rows of one answer of each question among them, the one with the smallest hash."""
    ids = rows.select("example_id")
    places = place_answers(
        answers.join(ids, on="example_id", how="semi"),
        groups.join(ids, on="example_id", how="semi"),
    )
    places = places.filter("represents")
    return rows.join(places, on="example_id", how="semi", maintain_order="left")


def find_unlike(batch: Batch, reference: Reference, level: float, name: str) -> tuple[str, ...]:
    """Name the signals of a batch in which it is unlike the reference, with the monitors.

    The answers are watched in random order, which `name` fixes. By chance any signal is named with
    at most `level` probability: the monitors' chance of an alarm within n answers is at most n / 2
    in units of `answers_per_alarm`.
    """
    order = seeded("order of answers", name).permutation(len(batch))
    seed = int(seeded("ties of answers", name).integers(2**63))
    settings = AlarmSettings(max(LEAST_PER_ALARM, math.ceil(len(batch) / (2 * level))))
    state = watch(initial_state(settings, reference, seed), batch[order])
    return tuple(long_name(signal) for signal in state.alarms)
