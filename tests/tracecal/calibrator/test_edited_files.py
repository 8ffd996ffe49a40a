"""Calibrators' files that were edited: none gives other numbers without a word, none a traceback."""

import contextlib
import json
import math
import random
from collections.abc import Iterator

import pytest

from support.labelled_answers import answers, fitted_file, unsealed
from tracecal.calibrator.predictor import make_predictor
from tracecal.calibrator.schema import CalibratorFile, content_digest
from tracecal.calibrator.scoring import score_answer
from tracecal.errors import InputError
from tracecal.estimators import registry

FEW = {"log_ridge", "seq_logp"}
TRACES = answers(4, seed=3).select("surprisal", "entropy").rows()
NEVER = "never written"


@pytest.fixture(scope="module")
def file():
    with pytest.MonkeyPatch.context() as patch:
        few = [entry for entry in registry.ESTIMATORS if entry.id in FEW]
        patch.setattr("tracecal.calibrator.training_set.ESTIMATORS", few)
        return fitted_file(answers(120), risk_control={"error_rates": [0.3, 0.5]})


def paths_in(value, path=()) -> Iterator[tuple]:
    """The path of every value; of a list the first and the last element alone."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths_in(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for place in {0, len(value) - 1}:
            yield from paths_in(value[place], (*path, place))


def holder_of(content, path):
    for key in path[:-1]:
        content = content[key]
    return content


def without(holder, key):
    del holder[key]


def changed_by(value) -> list:
    """Other values of the key: of other types, infinite, no number, and with another digit."""
    others = [None, NEVER, [], {}, True, -1, math.inf, math.nan, 1e308]
    if isinstance(value, bool):
        others.append(not value)
    elif isinstance(value, int | float):
        others += [value + 1, -value, value * (1 + 1e-9)]
    elif isinstance(value, str):
        others += [value[:-1], value + "x"]
    elif isinstance(value, list):
        others += [value[::-1], value + value[:1], value[:-1]]
    elif isinstance(value, dict):
        others.append(dict(reversed(value.items())))
    return [other for other in others if repr(other) != repr(value)]


def edits_of(content) -> Iterator[dict]:
    """The content with one edit each."""
    text = json.dumps(content)
    for path in paths_in(content):
        value = holder_of(content, path)[path[-1]]
        missing = json.loads(text)
        without(holder_of(missing, path), path[-1])
        yield path, "missing", missing
        for other in changed_by(value):
            edited = json.loads(text)
            holder_of(edited, path)[path[-1]] = other
            yield path, other, edited


def numbers_of(file) -> list:
    """What the file says of new answers: all that a user is told."""
    predictor = make_predictor(file, None, "C.json")
    confidences = [score_answer(predictor, *trace, 0.5) for trace in TRACES]
    return [(one.probability, one.lower, one.upper, one.keep) for one in confidences]


def read(path, content):
    """The file's numbers; None where it is refused, in a sentence for each wrong key."""
    path.write_text(json.dumps(content), encoding="utf-8")
    try:
        return numbers_of(CalibratorFile.read(path))
    except InputError as error:
        assert all(20 < len(line) < 1500 for line in str(error).splitlines())
        return None


def test_an_edit_of_a_sealed_file_is_refused(file, tmp_path):
    expected, n_edits = numbers_of(file), 0
    for path, other, edited in [*edits_of(file.content())][::3]:
        is_reordered = isinstance(other, dict) and len(other) > 1
        if path == ("fitted_on", "checksum") and other in ("missing", None):
            continue  # a file without one: below
        found = read(tmp_path / "C.json", edited)
        assert found is None or (is_reordered and found == expected), (path, other)
        n_edits += 1
    assert n_edits > 471


def test_an_edit_of_a_file_without_checksum_is_refused_harmless_or_warned_of(
    file, tmp_path, caplog
):
    expected, content = numbers_of(file), unsealed(file.content())
    caplog.set_level("WARNING", "tracecal")
    n_changed = 0
    for path, other, edited in edits_of(content):
        caplog.clear()
        found = read(tmp_path / "C.json", edited)
        if found not in (None, expected):
            n_changed += 1
            assert "C.json holds no checksum" in caplog.text, (path, other)
            probabilities = [value for *values, _ in found for value in values]
            assert all(value is None or 0 <= value <= 1 for value in probabilities), (path, other)
    assert n_changed > 10


FORGED = [
    ("fitted_on.vocabulary", 10**30),
    ("fitted_on.task", "\ud800"),
    ("fitted_on.base_rate", True),
    ("seq_logp.final.intercept", True),
    ("seq_logp.final.weights.0", 1e308),
    ("log_ridge.risk_control.thresholds.1.error", None),
    ("log_ridge.risk_control.thresholds.1.threshold", True),
    ("log_ridge.reference.length", []),
    ("log_ridge.reference.length.0", 0.5),
    ("log_ridge.later_key", json.loads(51 * "[" + 51 * "]")),
    ("log_ridge.held_out.fold", [1]),
]


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "without checksum"])
@pytest.mark.parametrize(("path", "value"), FORGED)
def test_a_forged_value_is_refused_whatever_the_checksum(file, tmp_path, path, value, sealed):
    content, keys = (
        unsealed(file.content()),
        [int(k) if k.isdigit() else k for k in path.split(".")],
    )
    assert content["log_ridge"]["risk_control"]["thresholds"][1]["threshold"] is not None
    holder_of(content, keys)[keys[-1]] = value
    if sealed:
        with contextlib.suppress(UnicodeEncodeError):
            content["fitted_on"]["checksum"] = "0"
            content["fitted_on"]["checksum"] = content_digest(content)
    (tmp_path / "C.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(
        InputError, match="(does not fit|cannot be read|base_rate: .* valid number)"
    ):
        CalibratorFile.read(tmp_path / "C.json")


def test_a_threshold_that_is_missing_without_a_reason_is_said_in_a_sentence(file):
    content = unsealed(file.content())
    for entry in content["log_ridge"]["risk_control"]["overall"]:
        entry.update(threshold=None, reason=None)
    control = CalibratorFile.parse(content, "C.json").estimators["log_ridge"].risk_control
    assert {control.explain(entry) for entry in control.overall} == {"no threshold guarantees it"}


def test_keys_that_stand_twice_are_refused(file, tmp_path):
    text = json.dumps(unsealed(file.content()))
    twice = text.replace('"ranked_by": ', '"ranked_by": "x", "ranked_by": ', 1)
    (tmp_path / "C.json").write_text(twice, encoding="utf-8")
    with pytest.raises(InputError):
        CalibratorFile.read(tmp_path / "C.json")


def test_a_flipped_bit_of_a_file_with_its_checksum_is_refused_or_changes_no_value(file, tmp_path):
    path = tmp_path / "C.json"
    whole = file.text().encode()
    rng = random.Random(49)
    n_refused = 0
    for place in rng.sample(range(8 * len(whole)), 300):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        try:
            CalibratorFile.read(path)
        except InputError:
            n_refused += 1
        else:
            assert json.loads(flipped) == json.loads(whole), f"bit {place}"
    assert n_refused > 290
