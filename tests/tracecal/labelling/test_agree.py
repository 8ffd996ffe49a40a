"""Agreement of two people's labels, against scikit-learn and by hand."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from support.labelled_answers import answers
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.labelling.agree import measure_agreement

FRAME = answers(40)
verdicts = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def judged(labels):
    return FRAME.head(len(labels)).with_columns(correct=pl.Series(labels, dtype=pl.Boolean))


@settings(max_examples=30, deadline=None)
@given(verdicts)
def test_kappa_is_scikit_learns(pairs):
    a, b = map(list, zip(*pairs, strict=True))
    agreement = measure_agreement(judged(a), judged(b), 1)
    assert agreement.share[0] == pytest.approx(np.mean(np.equal(a, b)))
    if len({*a, *b}) == 1:
        assert agreement.kappa[0] is None
    else:
        assert agreement.kappa[0] == pytest.approx(cohen_kappa_score(a, b))
        assert agreement.disagreements.height == sum(
            first_label != second_label for first_label, second_label in pairs
        )


def test_unsure_and_missing_answers_are_left_out():
    agreement = measure_agreement(judged([True, None, False]), judged([True, True, True, False]), 1)
    assert (agreement.n, agreement.n_unpaired) == (2, 2)
    assert agreement.disagreements.rows() == [("a0002", False, True)]


def test_intervals_resample_questions():
    """Answers of one question agree or disagree together: the interval is wider than of singles."""
    a = [True] * 40
    b = [place % 8 < 4 for place in range(40)]
    widths = []
    for size in (1, 4):
        group = pl.format("g{}", pl.int_range(pl.len()) // size)
        frame = judged(a).with_columns(group_id=group)
        _, low, high = measure_agreement(frame, judged(b), 1).share
        widths.append(high - low)
    assert widths[1] > 1.5 * widths[0]


def test_two_who_agree_on_all_may_yet_disagree_on_others():
    """Of 20 answers on which all agree, the truth may be 84 % (the exact interval's lower end is
    .83): an interval from 100 to 100 % would be wrong in a third of files where 95 % is true.
    """
    labels = [place % 3 > 0 for place in range(20)]
    agreement = measure_agreement(judged(labels), judged(labels), 1)
    (share, low, high), (kappa, kappa_low, kappa_high) = agreement.share, agreement.kappa
    assert share == high == kappa == kappa_high == 1
    assert 0.75 < low < 0.95 and 0.4 < kappa_low < 0.95


def test_files_without_a_common_verdict_are_refused():
    with pytest.raises(InputError, match="no answer has a verdict in both"):
        measure_agreement(judged([True]), judged([None]), 1)


def test_the_command_lists_the_disagreements(tmp_path, capsys):
    for name, labels in (("a", [True, True, False]), ("b", [True, False, False])):
        judged(labels).write_ndjson(tmp_path / f"{name}.jsonl")
    assert main(["agree", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]) == 0
    printed = capsys.readouterr().out
    assert "3 answers judged by both" in printed
    assert "equal verdicts: 66.7 %" in printed
    assert "a0001: right, wrong" in printed
