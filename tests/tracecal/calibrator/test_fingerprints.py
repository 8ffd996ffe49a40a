"""Which answers are labelled ones: by question, text and trace, never by their id."""

import numpy as np
import pytest
from scipy.stats import binom

from support.labelled_answers import answers, fitted_file
from tracecal.answers.reading import Reading
from tracecal.answers.record import QUESTION, Record
from tracecal.answers.row import as_frame, read_row
from tracecal.calibrator.predictor import make_predictor
from tracecal.calibrator.scoring import score_answers
from tracecal.calibrator.trace_kinds import are_among, fingerprints
from tracecal.estimators.registry import ESTIMATORS

SURE, DOUBTFUL = [0.0, 0.0001, 0.0002, 0.0003], [0.1234, 0.5678, 1.2345]


def record_frame(surprisal, **details):
    return as_frame([Record("q-1", surprisal, **details)])


@pytest.mark.parametrize(
    ("labelled", "new", "is_labelled"),
    [
        # Without a question, only a trace that is no chance tells.
        ({"surprisal": SURE, "answer": "Oslo"}, {"surprisal": SURE, "answer": "Oslo"}, False),
        ({"surprisal": DOUBTFUL}, {"surprisal": DOUBTFUL}, True),
        ({"surprisal": DOUBTFUL, "answer": "A"}, {"surprisal": DOUBTFUL, "answer": "B"}, False),
        # With one, question, text and trace must all be equal.
        ({"surprisal": SURE, "prompt": "q"}, {"surprisal": SURE, "prompt": "q"}, True),
        ({"surprisal": SURE, "asked": "q"}, {"surprisal": SURE, "asked": "q"}, True),
        ({"surprisal": DOUBTFUL, "prompt": "q"}, {"surprisal": DOUBTFUL, "prompt": "r"}, False),
        ({"surprisal": SURE, "prompt": "q"}, {"surprisal": SURE[:3], "prompt": "q"}, False),
    ],
)
def test_an_answer_is_a_labelled_one_by_question_text_and_trace(labelled, new, is_labelled):
    digests = fingerprints(record_frame(**labelled))
    assert are_among(record_frame(**new), digests).to_list() == [is_labelled]


@pytest.mark.parametrize(
    "request_body",
    [
        {"messages": [{"role": "user", "content": "Which city?"}], "temperature": 0},
        {"prompt": "Which city?"},
        {"input": "Which city?", "model": "m"},
    ],
)
def test_what_was_asked_is_read_from_the_request_whatever_its_settings(request_body):
    row = {"id": "a", "answer": "Oslo", "logprobs": [-0.1]}
    asked = read_row(row | {"request": request_body}, Reading()).asked
    assert asked == read_row(row | {"request": request_body | {"seed": 7}}, Reading()).asked
    name = next(iter(request_body))
    other = read_row(row | {"request": request_body | {name: "Which river?"}}, Reading()).asked
    assert None not in (asked, other) and asked != other
    assert read_row(row, Reading()).asked is None


ROW = {"id": "a", "answer": "Oslo", "logprobs": [-0.1]}
SENT = {"prompt": "Answer with a city."}
MESSAGES = [{"role": "user", "content": "Which city?"}]


@pytest.mark.parametrize("sent", [{}, SENT, {"request": SENT}])
@pytest.mark.parametrize("column", ["question", "query", "messages", "context", "passage"])
def test_a_question_in_a_column_of_its_own_identifies_an_answer(column, sent):
    """Beside a prompt that all answers share, too."""

    def keys(first, second):
        rows = [ROW | sent | {column: question} for question in (first, second)]
        frame = as_frame([read_row(row, Reading()) for row in rows])
        return frame.select(QUESTION).to_series()

    city, river = MESSAGES, [{"role": "user", "content": "Which river?"}]
    if column != "messages":
        city, river = "Which city?", "Which river?"
    assert keys(city, city).n_unique() == 1 and keys(city, city).null_count() == 0
    assert keys(city, river).n_unique() == 2
    assert not are_among(
        as_frame([read_row(ROW | sent | {column: river}, Reading())]),
        fingerprints(as_frame([read_row(ROW | sent | {column: city}, Reading())])),
    )[0]


def test_a_question_that_was_sent_is_known_again_without_its_column():
    """Live answers have the messages alone, files often the question beside them."""
    replied = [*MESSAGES, {"role": "assistant", "content": "Oslo"}]
    rows = [
        {"request": {"messages": MESSAGES}},
        {"request": {"messages": MESSAGES}, "question": "Which city?", "messages": replied},
        {"messages": replied},
    ]
    read = [read_row(ROW | row, Reading()).asked for row in rows]
    assert read[0] is not None and set(read) == {read[0]}
    prompted = read_row(
        ROW | {"prompt": "Q: Which city?\nA:", "question": "Which city?"}, Reading()
    )
    assert prompted.asked is None


def short_answers(rng, n):
    """One token each, two thirds of them sure: 0.0 at four decimals, and right but for one in fifty."""
    is_sure = rng.random(n) < 2 / 3
    surprisal = np.where(is_sure, 0.0, rng.uniform(0.2, 1.5, n).round(4))
    correct = rng.random(n) < np.where(is_sure, 0.98, 0.55)
    return as_frame(
        Record(f"q-{place:04}", [s], answer="yes", correct=bool(c), processed="no", model="m")
        for place, (s, c) in enumerate(zip(surprisal, correct, strict=True))
    )


def test_a_guarantee_holds_for_another_file_that_numbers_its_answers_alike(monkeypatch):
    """Without the surest answers that both files number alike, more than a fifth of those kept would be wrong."""
    few = [entry for entry in ESTIMATORS if entry.id in ("min_prob", "seq_logp")]
    monkeypatch.setattr("tracecal.calibrator.training_set.ESTIMATORS", few)
    n_draws, n_broken = 12, 0
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        file = fitted_file(short_answers(rng, 600), "min_prob")
        predictor, kept = make_predictor(file, "min_prob", "C.json"), []
        for _ in range(8):
            new = short_answers(rng, 600)
            scored = score_answers(new, predictor, 0.2)
            kept += new.filter(scored["keep"].fill_null(False))["correct"].to_list()
        n_broken += bool(kept) and 1 - np.mean(kept) > 0.2
    assert n_broken <= binom.ppf(0.99, n_draws, 0.1)


def test_no_answer_of_the_same_file_is_decided():
    labelled = answers(60, prompt=None)
    assert are_among(labelled, fingerprints(labelled)).sum() > 40
