"""Parts of answers outside the workflow: from a labelled file to a confidence for each of them."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tracecal
from support.log_rows import chat, token
from support.running import ASK, CHAT
from tests.tracecal.serving.test_stream_end import Response, confidences
from tracecal.answers.answers import read_file
from tracecal.answers.facts import split_part_labels
from tracecal.answers.parts.part_answers import part_answers
from tracecal.answers.parts.parts import Parts, read_parts, requested_parts, schema_leaves
from tracecal.answers.reading import Reading
from tracecal.calibrator.part_confidences import UNFITTED, score_parts, score_response_parts
from tracecal.calibrator.predictor import load_predictor
from tracecal.calibrator.scoring import score_answer
from tracecal.cli.main import main
from tracecal.errors import InputError, WrongRow
from tracecal.fits.fits import probability_bounds
from tracecal.serving.endpoints import ENDPOINTS
from tracecal.serving.scored_stream import ScoredStream
from tracecal.serving.scorer import Scorer

NAMES = ("capital", "currency")
VALUES = ("Lima", "Sol", "Rome", "Euro", "Kiel")
CALIBRATE = "calibrate --answers labelled.jsonl --task facts --output C.json --config fit.yaml"
CALIBRATE = [*CALIBRATE.split(), "--estimator", "seq_logp", "--parts", "json: [capital, currency]"]
SCORE = "score --answers new.jsonl --calibrator C.json --output s.jsonl".split()
WEAK = {"capital": 1.0, "currency": 0.3}  # how sure the model is where it is right


def rows(n, seed, labelled=True):
    """Answers in JSON; a risky value is more often wrong, and currencies are riskier."""
    rng = np.random.default_rng(seed)
    for number in range(n):
        tokens, surprisal, entropy, correct = ['{"'], [0.01], [0.02], {}
        for name in NAMES:
            risk = rng.gamma(2.0, 0.4 / WEAK[name])
            correct[name] = bool(rng.random() < np.exp(-risk))
            value = str(rng.choice(VALUES))
            tokens += [name, '": "', value, '", "' if name == NAMES[0] else '"}']
            surprisal += [0.01, 0.01, float(rng.gamma(2.0, risk / 2)), 0.01]
            entropy += [0.02, 0.01, float(rng.gamma(2.0, risk / 2)), 0.02]
        row = {
            "id": f"q{number}",
            "prompt": f"Country {number}?",
            "answer": "".join(tokens),
            "tokens": tokens,
            "surprisal": surprisal,
            "entropy": entropy,
            "model": "m",
            "stop_token": "absent",
            "processed": "no",
        }
        yield row | ({"correct": correct} if labelled else {})


def write(name, made):
    text = "".join(json.dumps(row) + "\n" for row in made)
    Path(name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which parts were calibrated."""
    root = tmp_path_factory.mktemp("parts")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        write("labelled.jsonl", rows(60, 1))
        write("new.jsonl", [*rows(4, 2, False), *nothing()])
        (root / "fit.yaml").write_text("splits: {count: 1}\nbootstrap: {resamples: 20}\n")
        assert main(CALIBRATE) == 0
    return root


def nothing():
    """An answer that does not parse, and one without tokens."""
    plain = {"model": "m", "surprisal": [0.5, 0.5], "entropy": [0.5, 0.5], "processed": "no"}
    yield plain | {"id": "no", "answer": "no idea", "tokens": ["no", " idea"]}
    yield plain | {"id": "bare", "answer": '{"capital": "Lima"}'}


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_each_part_is_calibrated_and_scored_with_its_place(here):
    with pytest.raises(SystemExit, match="4"):  # nothing is guaranteed
        main([*SCORE, "--error-rate", "0.5"])
    scored = pl.read_ndjson("s.jsonl")
    assert scored["example_id"].to_list() == ["q0", "q1", "q2", "q3", "no", "bare"]
    given = [json.loads(line) for line in Path("new.jsonl").read_text("utf-8").splitlines()]
    for row, found in zip(given[:4], scored["parts"].to_list()[:4], strict=True):
        assert [one["name"] for one in found] == list(NAMES)
        for one in found:
            assert json.loads(row["answer"])[one["name"]] == one["value"]
            assert row["answer"][one["start"] : one["end"]] == one["value"]
            assert one["lower"] == one["probability"] == one["upper"]
            assert 0 < one["probability"] < 1
    assert scored["parts"].to_list()[4:] == [None, None]
    assert scored["reason"].to_list()[4:] == [
        "it does not hold the parts in the form that is asked for",
        "its tokens are not listed",
    ]


def test_one_calibrator_knows_that_one_name_fails_more_often(here):
    fitted = load_predictor("C.json", "seq_logp")
    assert fitted.by_part and fitted.fitted_on.parts.names == NAMES
    same = {name: score_answer(fitted, [0.4], [0.3], part=name).probability for name in NAMES}
    assert same["currency"] < same["capital"]
    unknown = score_answer(fitted, [0.4], [0.3], part="continent").probability
    assert same["currency"] < unknown < same["capital"]


def test_one_part_by_itself_has_the_score_that_it_has_in_the_file(here):
    answers = read_file("new.jsonl").frame
    for estimator in ("trace_plus", "stack_of_six", "len_norm_logp"):
        fitted = load_predictor("C.json", estimator)
        found = score_parts(answers, fitted)["parts"][0][1]
        cut, _ = part_answers(answers, fitted.fitted_on.parts)
        row = cut.filter(example_id="q0/currency").row(0, named=True)
        alone = score_answer(fitted, row["surprisal"], row["entropy"], part="currency")
        assert alone.probability == pytest.approx(found["probability"], abs=1e-12)


def test_bounds_of_entropies_give_bounds_of_a_parts_probability(here):
    fitted = load_predictor("C.json", "trace_plus")
    x = np.array([[0.2, 0.4, 0.0, 0.1, 0.3, 0.3, 0.5, 0.5, code] for code in (0.0, 1.0)])
    low, high = x.copy(), x.copy()
    low[:, :8] -= 0.1
    high[:, :8] += 0.1
    least, most = probability_bounds(fitted.final, np.stack([low, low, high]))[1:]
    rng = np.random.default_rng(0)
    for _ in range(200):
        inside = low + rng.random(low.shape) * (high - low)
        found = fitted.final.predict(inside)
        assert (least - 1e-12 <= found).all() and (found <= most + 1e-12).all()


def test_in_csv_each_part_is_a_row(here):
    assert main([*SCORE[:-1], "s.csv"]) == 0
    table = pl.read_csv("s.csv")
    assert table.filter(example_id="q0")["name"].to_list() == list(NAMES)
    assert table.height == 4 * 2 + 2


def test_parts_of_one_answer_are_one_group(tmp_path):
    lines = [json.loads(json.dumps(row)) for row in rows(3, 5)]
    lines[2]["prompt"] = lines[1]["prompt"]
    write(tmp_path / "a.jsonl", lines)
    read = read_file(tmp_path / "a.jsonl")
    made, without = part_answers(
        read.frame, read_parts("json: [capital, currency]"), read.part_labels
    )
    assert made["group_id"].to_list() == ["q0"] * 2 + ["q1"] * 4
    assert without.is_empty() and made["correct"].null_count() == 0


def test_what_is_labelled_by_part_says_so_and_the_reverse(here, caplog):
    assert main(["D.json" if word == "C.json" else word for word in CALIBRATE[:-2]]) == 1
    assert "labelled by part: say which parts there are with --parts" in caplog.text
    whole = load_predictor("C.json", "seq_logp")
    with pytest.raises(InputError, match="on parts of answers: score each part"):
        score_answer(whole, [0.1], [0.1])


def test_a_label_of_no_part_is_refused(tmp_path):
    made = list(rows(1, 1))
    made[0]["correct"] = {"capitol": True}
    write(tmp_path / "a.jsonl", made)
    read = read_file(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="answer 'q0': unknown part 'capitol' .did you mean"):
        part_answers(read.frame, read_parts("json: [capital]"), read.part_labels)


def test_a_sentence_is_wrong_that_overlaps_a_wrong_span(tmp_path):
    tokens = ["It rains.", " It", " pours.", "\nThe end."]
    row = {"id": "a", "answer": "".join(tokens), "tokens": tokens, "surprisal": [0.1] * 4}
    write(tmp_path / "a.jsonl", [row | {"model": "m", "wrong_spans": [[11, 14]]}])
    read = read_file(tmp_path / "a.jsonl")
    made, _ = part_answers(read.frame, read_parts("sentences: true"), read.part_labels)
    found = made.select("name", "answer", "correct", "start", "end").rows()
    assert found == [
        ("sentence 1", "It rains.", True, 0, 1),
        ("sentence 2", "It pours.", False, 1, 3),
        ("sentence 3", "The end.", True, 3, 4),
    ]


@pytest.mark.parametrize(
    ("correct", "refused"),
    [({"sentence 1": True}, False), ({"sentence 2": True}, True), ({"sentence": False}, True)],
)
def test_verdicts_and_wrong_spans_must_agree(tmp_path, correct, refused):
    tokens = ["It rains.", " It", " pours."]
    row = {"id": "a", "answer": "".join(tokens), "tokens": tokens, "surprisal": [0.1] * 3}
    write(tmp_path / "a.jsonl", [row | {"correct": correct, "wrong_spans": [[11, 14]]}])
    read, parts = read_file(tmp_path / "a.jsonl"), read_parts("sentences: true")
    if not refused:
        assert part_answers(read.frame, parts, read.part_labels)[0]["correct"].to_list() == [1, 0]
        return
    with pytest.raises(InputError, match="labels of the answer 'a' contradict each other on"):
        part_answers(read.frame, parts, read.part_labels)


@pytest.mark.parametrize(
    "row",
    [
        {"correct": {"a": "perhaps"}},
        {"wrong_spans": [[3, 1]]},
        {"wrong_spans": 3},
        {"wrong_spans": [[0, "x"]]},
    ],
)
def test_labels_that_are_none_are_wrong_rows(row):
    with pytest.raises(WrongRow):
        split_part_labels(row)


def test_rows_of_whole_answers_are_as_they_were():
    row = {"id": "a", "correct": True}
    assert split_part_labels(row) == (row, None)
    assert split_part_labels("text") == ("text", None)


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/Address"},
        "items": {"type": "array", "items": {"properties": {"price": {"type": "number"}}}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "$defs": {"Address": {"properties": {"city": {"type": "string"}}}},
}
LEAVES = ("name", "address.city", "items[].price", "note", "tags[]")


def test_the_leaves_of_a_json_schema_are_the_parts(tmp_path):
    assert schema_leaves(SCHEMA) == LEAVES
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    assert read_parts(str(tmp_path / "schema.json")).names == LEAVES
    sent = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
    assert read_parts(json.dumps(sent)).names == LEAVES


def test_pydantics_own_schemas_have_their_leaves():
    from pydantic import BaseModel

    class City(BaseModel):
        name: str
        mayor: str | None = None

    class Country(BaseModel):
        capital: City
        others: list[City]

    expected = ("capital.name", "capital.mayor", "others[].name", "others[].mayor")
    assert schema_leaves(Country.model_json_schema()) == expected


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("nonsense: [", "neither a file nor YAML"),
        ("{type: string}", "no 'properties'"),
        ("json: [a..b]", "is not a path"),
        ('{properties: {a: {$ref: "#/x"}}}', "'#/x', which it does not hold"),
        ('{properties: {a: {$ref: "#"}}}', "nests more than 20 levels"),
        ("just text", "must be a mapping"),
    ],
)
def test_what_states_no_parts_is_said(given, sentence):
    with pytest.raises(InputError, match=sentence):
        read_parts(given)


TOKENS = ['{"', "capital", '": "', "Li", "ma", '", "', "currency", '": "', "Sol", '"}']


def said(text=None, **more):
    """A chat completion in JSON; the value of `currency` is the least certain."""
    logprobs = [-1.5 if piece == "Sol" else -0.05 for piece in TOKENS]
    content = [
        token(piece, logprob, [(piece, logprob), ("?", -3.0)])
        for piece, logprob in zip(TOKENS, logprobs, strict=True)
    ]
    return chat(content, "".join(TOKENS) if text is None else text, **more)


def scorer(estimator="seq_logp"):
    fitted = load_predictor("C.json", estimator)
    return Scorer(fitted, Reading(vocabulary=1000, processed="no", stop_token="absent"), 0.5)


def test_a_servers_answer_gets_the_confidence_of_each_part(here):
    answer = said()
    scorer().add_confidence(answer, ASK)
    found = answer["choices"][0]["confidence"]
    assert (found["probability"], found["reason"], found["error_rate"]) == (None, None, 0.5)
    shown = [(one["name"], one["value"], one["start"], one["end"]) for one in found["parts"]]
    assert shown == [("capital", "Lima", 13, 17), ("currency", "Sol", 33, 36)]
    alone = score_answer(load_predictor("C.json", "seq_logp"), [0.05, 0.05], None, part="capital")
    assert found["parts"][0]["probability"] == pytest.approx(alone.probability)
    assert found["parts"][1]["probability"] < found["parts"][0]["probability"]
    json.dumps(found)


def streamed(scoring, request):
    """The confidence at the end of the streamed answer."""
    whole = said()["choices"][0]
    stream = ScoredStream(scoring, request, ENDPOINTS[CHAT], 10**6)
    chunks = []
    for place, one in enumerate(whole["logprobs"]["content"]):
        last = place == len(TOKENS) - 1
        choice = {
            "index": 0,
            "delta": {"content": one["token"]},
            "logprobs": {"content": [one]},
            "finish_reason": "stop" if last else None,
        }
        chunks.append({"model": "m", "choices": [choice]})

    async def events():
        response = Response(chunks, is_done=True)
        return [event async for several in stream.events(response) for event in several if event]

    data = [event.decode().removeprefix("data: ").strip() for event in asyncio.run(events())]
    (confidence,) = confidences(data).values()
    return confidence


def test_so_does_a_streamed_one(here):
    answer = said()
    scorer().add_confidence(answer, ASK)
    assert streamed(scorer(), ASK) == answer["choices"][0]["confidence"]


WANTED = {"properties": {name: {"type": "string"} for name in ("currency", "capital", "area")}}
IN_CHAT = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": WANTED}}
}
IN_RESPONSES = {"text": {"format": {"type": "json_schema", "name": "s", "schema": WANTED}}}


@pytest.mark.parametrize("form", [IN_CHAT, IN_RESPONSES])
def test_parts_that_a_requests_schema_names_are_told_and_unknown_without_a_fit(
    here, of_top_k, form
):
    request = ASK | form
    whole = Scorer(of_top_k, scorer().reading.model_copy(update={"stop_token": "included"}), 0.3)
    alone, found = whole.confidence(said(), ASK), whole.confidence(said(), request)
    parts = found.pop("parts")
    assert found == alone and found["probability"] is not None
    assert [(one["name"], one["value"]) for one in parts] == [
        ("capital", "Lima"),
        ("currency", "Sol"),
    ]
    assert {(one["probability"], one["keep"]) for one in parts} == {(None, None)}
    assert all(UNFITTED in one["reason"] for one in parts)

    fitted = load_predictor("C.json", "seq_logp")
    of_one = fitted.fitted_on.model_copy(update={"parts": Parts(json=["capital"])})
    one_known = replace(scorer(), predictor=replace(fitted, fitted_on=of_one))
    capital, currency = one_known.confidence(said(), request)["parts"]
    assert [capital] == one_known.confidence(said(), ASK)["parts"]
    assert capital["probability"] is not None
    assert (currency["name"], currency["probability"]) == ("currency", None)
    assert currency["reason"] == UNFITTED
    assert streamed(one_known, request)["parts"] == [capital, currency]


@pytest.mark.parametrize(
    "form",
    [
        {"type": "json_object"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": [1]},
        {"type": "json_schema", "schema": {"properties": {"a": {"$ref": "#/no"}}}},
        "json_schema",
    ],
)
def test_a_request_without_a_schema_of_parts_asks_for_none(form):
    assert requested_parts(ASK | {"response_format": form}) == ()
    assert requested_parts(ASK | {"text": {"format": form}}) == ()


def test_a_schema_that_multiplies_is_not_read_to_its_end():
    chain = {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 9} for n in range(9)}
    with pytest.raises(ValueError, match="more than 10000 values"):
        schema_leaves({"$defs": chain | {"9": 3}, "properties": {"a": {"$ref": "#/$defs/0"}}})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (said("Lima, I think."), "the tokens spell another text"),
        (chat([token("no", -0.1, [("no", -0.1)])], "no"), "does not hold the parts"),
        (said(logprobs=None), ""),
    ],
)
def test_an_answer_without_parts_says_why(here, answer, reason):
    found = scorer().confidence(answer, ASK)
    assert found["parts"] == [] and found["probability"] is None
    assert reason in found["reason"]


def test_what_speaks_against_an_answer_leaves_its_parts_undecided(here):
    found = scorer().confidence(said(), ASK, "the traffic has changed")
    assert [one["keep"] for one in found["parts"]] == [None, None]
    assert all("the traffic has changed" in one["reason"] for one in found["parts"])


def test_what_follows_an_answer_leaves_its_parts_as_they_are(here):
    more = "\nQ: and Peru?"
    answer = said("".join(TOKENS) + more)
    answer["choices"][0]["logprobs"]["content"].append(token(more, -0.1, [(more, -0.1)]))
    assert scorer().confidence(answer, ASK)["parts"] == scorer().confidence(said(), ASK)["parts"]


def test_one_call_gives_a_response_its_confidence_by_field(here):
    fitted = load_predictor("C.json", "seq_logp")
    reading = Reading(vocabulary=1000, processed="no", stop_token="absent")
    found = score_response_parts(fitted, said(), ASK, 0.5, reading)
    assert list(found) == list(NAMES)
    assert found["capital"].probability > found["currency"].probability
    assert score_response_parts(fitted, said("no JSON"), ASK, None, reading) == {}


def with_gap(row, name, place, lists):
    """The row under another name, in which a token lacks what `lists` hold of it."""
    gaps = {of: [*row[of][:place], None, *row[of][place + 1 :]] for of in lists}
    return row | gaps | {"id": name}


def rounded(parts):
    """Scored parts without the last digits, which depend on how many are scored at once."""
    return [
        {
            key: round(value, 12) if isinstance(value, float) else value
            for key, value in part.items()
        }
        for part in parts
    ]


def listed(row):
    """The row with log-probabilities of three tokens in place of surprisals and entropies."""
    top = [[-value, -value - 1.5, -value - 2.5] for value in (1.2 * np.ones(len(row["tokens"])))]
    told = {"logprobs": [first for first, *_ in top], "top_logprobs": top}
    return {name: row[name] for name in row if name not in ("surprisal", "entropy")} | told


@pytest.mark.parametrize(
    "lists",
    [("surprisal", "entropy"), ("surprisal",), ("entropy",), ("logprobs", "top_logprobs")],
)
def test_a_part_is_scored_where_its_own_tokens_have_what_it_needs(here, tmp_path, lists):
    """The first token is of no part, the eighth is the currency."""
    row = next(rows(1, 7, labelled=False))
    row = listed(row) if "logprobs" in lists else row
    made = [row | {"id": "whole"}, with_gap(row, "other", 0, lists), with_gap(row, "own", 7, lists)]
    write(tmp_path / "gaps.jsonl", made)
    reading = Reading(vocabulary=1000)
    frame = read_file(tmp_path / "gaps.jsonl", reading).frame
    assert frame["partial"].is_null().to_list() == [True, False, False]
    fitted = load_predictor("C.json", "mean_of_three")
    (alone,) = tracecal.Calibrator.load("C.json").score(
        [made[1]], estimator="mean_of_three", reading=tracecal.Reading(vocabulary=1000)
    )["parts"]
    assert {one["probability"] for one in alone} == {
        one["probability"] for one in score_parts(frame[1:2], fitted)["parts"][0]
    }
    whole, other, own = map(rounded, score_parts(frame, fitted)["parts"].to_list())
    assert all(one["probability"] is not None for one in whole)
    assert other == whole and own[0] == whole[0]
    assert own[1]["probability"] is None
    assert own[1]["reason"] == frame["lacks"][2] is not None
    for name, expected in (("other", whole), ("own", own)):
        one = next(one for one in made if one["id"] == name)
        found = score_response_parts(fitted, one, reading=reading)
        for part in expected:
            assert found[part["name"]].probability == pytest.approx(part["probability"])
            assert found[part["name"]].reason == part["reason"]


def test_whole_answers_with_a_gap_are_read_as_before(here, tmp_path):
    row = next(rows(1, 7, labelled=False))
    write(tmp_path / "gap.jsonl", [with_gap(row, "a", 0, ["surprisal", "entropy"])])
    frame = read_file(tmp_path / "gap.jsonl").frame
    assert frame.select("surprisal", "entropy").row(0) == (None, None)
    assert frame["lacks"][0] == "the log-probability of token 1 is not given"
    row = frame["partial"][0]
    assert row["surprisal"][0] is row["entropy"][0] is None
    assert None not in row["surprisal"][1:] + row["entropy"][1:]
