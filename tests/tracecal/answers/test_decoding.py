"""What requests state of decoding, and which answers have no decision by it."""

import pytest

from support.labelled_answers import answers, predictor_of
from tracecal.answers.facts import stated_decoding
from tracecal.answers.reading import Reading
from tracecal.answers.row import read_row
from tracecal.calibrator.scoring import score_answers
from tracecal.calibrator.trace_kinds import compare_answers, other_decoding

ROW = {"id": "a", "answer": "Oslo", "logprobs": [-0.1]}
CUT = {"temperature": 0.7, "top_p": 0.7}


@pytest.mark.parametrize(
    ("request_body", "decoding"),
    [
        (CUT, "temperature 0.7, top_p 0.7"),
        ({"temperature": "0.7"}, "temperature 0.7"),  # of a table
        ({"temperature": 0, "presence_penalty": -0.5}, "presence_penalty -0.5"),
        ({"temperature": 1, "logit_bias": {"50": -100}}, "logit_bias"),
        ({"temperature": 1.0, "top_p": 1, "top_k": -1, "repetition_penalty": 1.0}, ""),
        ({"top_p": 1, "messages": []}, None),
        ({"temperature": "default"}, None),
    ],
)
def test_a_request_states_what_changes_probabilities(request_body, decoding):
    assert stated_decoding(request_body) == decoding
    assert read_row(ROW | {"request": request_body}, Reading()).decoding == decoding


@pytest.mark.parametrize(
    "row",
    [
        {"request": {"body": CUT}},
        {"response": {"body": ROW}, "request": CUT},
        {"sampling_params": CUT},
        {"temperature": "0.7", "top_p": 0.7, "top_k": 20},
    ],
)
def test_settings_are_found_where_rows_keep_them(row):
    record = read_row(ROW | row, Reading())
    assert (record.decoding, record.processed) == ("temperature 0.7, top_p 0.7", "unknown")
    assert read_row(ROW | row, Reading(processed="no")).decoding is None


def fitted_with(content, processed, *decodings):
    changed = {"processed": processed, "decodings": list(decodings)}
    return predictor_of(content | {"fitted_on": content["fitted_on"] | changed}, "trace_plus", "x")


@pytest.mark.parametrize(
    ("processed", "decodings", "decoding", "reason"),
    [
        ("no", [""], "top_p 0.7", "states top_p 0.7, which changes .* have raw ones"),
        ("no", [], "temperature 2", "states temperature 2"),
        ("unknown", [], "temperature 2", "labelled answers do not say how"),
        ("unknown", ["temperature 2"], "temperature 1.5", "labelled answers state temperature 2"),
        ("unknown", ["temperature 2"], "", "states nothing that changes"),
        ("no", [""], "", None),
        ("unknown", ["temperature 2", "temperature 1.5"], "temperature 1.5", None),
        ("no", [""], None, None),
        ("unknown", [], "", None),
        ("yes", [], "temperature 2", None),
    ],
)
def test_answers_decoded_otherwise_than_the_labelled_ones_have_no_decision(
    ranked_content, processed, decodings, decoding, reason
):
    predictor = fitted_with(ranked_content, processed, *decodings)
    new = answers(5, seed=1, decoding=decoding, processed="unknown")
    rate = max(e.error_rate for e in predictor.control.thresholds if e.threshold is not None)
    scored = score_answers(new, predictor, rate)
    assert scored["probability"].null_count() == 0
    if reason is None:
        assert scored["keep"].null_count() == 0 and scored["reason"].null_count() == 5
    else:
        assert scored["keep"].null_count() == 5
        assert scored["reason"].str.contains(reason).all()
    assert (other_decoding(decoding, predictor.fitted_on) is None) == (reason is None)


def test_what_is_assumed_is_said_once_with_the_option_that_settles_it(content, caplog):
    predictor = fitted_with(content, "no", "")
    score_answers(answers(5, seed=1, processed="unknown"), predictor)
    assert caplog.text.count("of the labelled ones are assumed") == 1
    assert "say Reading(processed='no')" in caplog.text
    for settled in ({"processed": "no"}, {"processed": "unknown", "decoding": "top_p 0.7"}):
        said = " ".join(compare_answers(answers(5, **settled), predictor.fitted_on))
        assert "are assumed" not in said
