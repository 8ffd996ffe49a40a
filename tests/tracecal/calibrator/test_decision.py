"""What `calibrate` prints: the decision, in a dozen lines of 80 columns."""

import pytest

from tracecal.calibrator.decision import decision_text, describe_counts
from tracecal.calibrator.guarantee_text import decided_rate, headline, other_rates
from tracecal.calibrator.schema import CalibrationData, ErrorRateThreshold

RATES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


def guarantees(kept, enough=None, rates=RATES):
    """Guarantees by rate: the share kept, and of others the labels that may be enough."""
    counts = {"n": 100, "kept": 0, "wrong": 0, "error": 0}
    return {
        rate: ErrorRateThreshold(
            error_rate=rate,
            threshold=0.5 if rate in kept else None,
            coverage=kept.get(rate, 0),
            enough=(enough or {}).get(rate),
            **counts,
        )
        for rate in rates
    }


def decided(table, asked):
    entry = decided_rate([*table.values()], asked)
    return entry and entry.error_rate


def others(table, rate, base_rate, asked):
    return other_rates([*table.values()], table[rate], base_rate, asked)


@pytest.mark.parametrize(
    ("rates", "asked", "rate"),
    [
        (RATES, (), 0.2),
        (RATES, (0.1, 0.2), 0.1),
        ((0.3, 0.45), (), 0.3),
        ((0.05, 0.1), (), 0.1),
        ((), (), None),
    ],
)
def test_the_rate_of_the_decision_does_not_depend_on_what_is_guaranteed(rates, asked, rate):
    assert decided(guarantees({}, rates=rates), asked) == rate
    assert decided(guarantees(dict.fromkeys(rates, 0.4), rates=rates), asked) == rate


def test_the_decision_says_what_is_kept_and_what_is_missing():
    table = guarantees({0.1: 0.3, 0.2: 0.534, 0.3: 0.8}, {0.05: 900})
    assert headline(table[0.2], 0.9, 0.56) == (
        "Keep about 53 % of answers like these: at most 20 % of those kept are wrong (90 % "
        "confidence)."
    )
    assert others(table, 0.2, 0.56, ()) == (
        "at 10 %: keep 30 %      at 5 %: not with these labels; about 900 may be enough"
    )
    assert headline(table[0.05], 0.9, 0.56).endswith(
        "at most 5 % wrong is not guaranteed with these labels; about 900 may be enough."
    )


def test_rates_above_the_models_own_are_listed_only_where_they_are_asked_for():
    table = guarantees({0.3: 0.9, 0.4: 1.0, 0.5: 1.0})
    assert others(table, 0.2, 0.65, ()) == "at 30 %: keep 90 %"
    few = guarantees({0.5: 1.0}, rates=(0.1, 0.2, 0.5))
    assert others(few, 0.2, 0.65, (0.2, 0.5, 0.1)) == (
        "at 10 %: not with these labels      at 50 %: keep all"
    )
    assert others(guarantees({0.05: 0.2}), 0.1, 0.98, ()) is None


@pytest.mark.parametrize(
    ("n_answers", "base_rate", "sentence"),
    [
        (400, 0.56, '400 answers by m to "cities"; all labelled, 44 % wrong.'),
        (1520, 0.56, '1,520 answers by m to "cities"; 400 labelled, 44 % wrong.'),
        (400, 1, '400 answers by m to "cities"; all labelled, none wrong.'),
        (400, 0.998, '400 answers by m to "cities"; all labelled, 0.2 % wrong.'),
    ],
)
def test_the_first_line_counts_answers_and_labels(n_answers, base_rate, sentence):
    data = CalibrationData(model="m", task="cities", n=400, base_rate=base_rate)
    assert describe_counts(data, n_answers) == sentence
    missing = data.model_copy(update={"without_probability": (("it was cut", 80), ("no", 3))})
    reasons = "83 have no probability: it was cut (80); no (3)."
    assert describe_counts(missing, n_answers) == f"{sentence[:-1]}; {reasons}"


def test_a_dozen_lines_of_80_columns_whatever_is_said():
    sentence = "Half of the labelled answers are right, and the other 50 % are not. " * 2
    paragraphs = [[sentence, sentence], [sentence, "  at 10 %: keep 30 %"], [sentence]]
    command = "tracecal score --answers new.jsonl --vocabulary 49152 --calibrator C.json --task t"
    lines = decision_text(paragraphs, {"Next": command, "More": "--all"}).splitlines()
    assert len(lines) == 12 and max(map(len, lines)) <= 80
    assert not any(line.endswith(" 50") for line in lines), "a number stays with its %"
    typed = "".join(lines[-3:-1]).replace("\\", "").split()
    assert " ".join(typed) == f"Next: {command}"
    many = decision_text([[sentence] * 2, [sentence] * 9, [sentence]], {"Next": "x"}).splitlines()
    assert len(many) == 12 and many[-4].startswith("  For the rest, see the calibrator's card")
    short = decision_text([["a"], ["b"]], {"Next": "tracecal label"})
    assert short == "a\n\nb\n\nNext: tracecal label"


def test_a_text_that_is_too_long_ends_with_a_sentence():
    sentence = "These words fill a line and the half of another one as they go on, and on, and on."
    paragraphs = [["One."], [*4 * [sentence], f"It is short. {sentence}"]]
    for n_lines in range(1, 6):
        further = [f"Line {number}." for number in range(n_lines)]
        lines = decision_text([*paragraphs, further, ["Last."]], {}).splitlines()
        at = next((n for n, line in enumerate(lines) if line.startswith("  For the rest")), None)
        assert len(lines) <= 12 and (at is None or lines[at - 1].endswith("."))
