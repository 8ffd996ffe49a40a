"""Logs of evaluation harnesses: answers with verdicts."""

import json
import zipfile
import zlib

import pyarrow as pa
import pytest

from support.log_rows import TWO, token, write
from tracecal.answers.answers import read_file
from tracecal.answers.log_file import ZSTANDARD
from tracecal.answers.reading import Reading
from tracecal.errors import InputError


def sample(id_=1, value="C", content="51", **more):
    choice = {
        "message": {"role": "assistant", "content": content},
        "stop_reason": "stop",
        "logprobs": {"content": [token("51", -0.25, TWO)]},
    }
    scores = {"match": {"value": value, "answer": "51"}}
    output = {"model": "openai/m", "choices": [choice], "usage": {}}
    return {
        "id": id_,
        "epoch": 1,
        "input": "how many?",
        "target": "51",
        "output": output,
        "scores": scores,
    } | more


def inspect(tmp_path, *samples, **reading):
    path = tmp_path / "log.json"
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": list(samples)}
    path.write_text(json.dumps(log, indent=2), encoding="utf-8")
    return read_file(path, Reading(**reading))


@pytest.mark.parametrize(
    ("value", "correct"), [("C", True), ("I", False), (1, True), (0.0, False), (True, True)]
)
def test_inspect_gives_trace_and_label(tmp_path, value, correct):
    row = inspect(tmp_path, sample(value=value), vocabulary=1000).frame.row(0, named=True)
    assert row["example_id"] == "1"
    assert row["correct"] is correct
    assert row["prompt"] is None  # which a chat template makes of the sample's input
    assert row["surprisal"] == pytest.approx([0.25])
    assert row["entropy"] is not None
    assert row["finish_reason"] == "stop"


@pytest.mark.parametrize(("temperature", "processed"), [(1, "no"), (0.7, "unknown")])
def test_inspect_says_what_was_asked_of_the_model(tmp_path, temperature, processed):
    plan = {"plan": {"config": {"temperature": temperature, "max_tokens": 24}}}
    (tmp_path / "log.json").write_text(json.dumps(plan | {"samples": [sample()]}))
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as log:
        log.writestr("header.json", json.dumps(plan))
        log.writestr("samples/1_epoch_1.json", json.dumps(sample()))
    for name in ("log.json", "log.eval"):
        assert read_file(tmp_path / name).frame["processed"].to_list() == [processed]


def packed(path, packing, *samples, damage=0):
    """A log as Inspect writes it: a zip with a file for each sample, newer ones in Zstandard."""
    with zipfile.ZipFile(path, "w") as log:
        log.writestr("header.json", json.dumps({"version": 2}))
        for one in samples:
            content = json.dumps(one).encode()
            name = f"samples/{one['id']}_epoch_{one['epoch']}.json"
            if packing != ZSTANDARD:
                log.writestr(name, content, packing)
                continue
            log.writestr(name, pa.compress(content, codec="zstd", asbytes=True))
            log.filelist[-1].compress_type = ZSTANDARD
            log.filelist[-1].file_size = len(content)
            log.filelist[-1].CRC = zlib.crc32(content) + damage
    return path


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD])
def test_inspects_own_files_hold_the_same(tmp_path, packing):
    both = [sample(), sample(id_=2, value="I")]
    path = packed(tmp_path / "log.eval", packing, *both)
    assert read_file(path).frame.equals(inspect(tmp_path, *both).frame)


def test_a_damaged_file_of_inspect_is_one_sentence(tmp_path):
    path = packed(tmp_path / "log.eval", ZSTANDARD, sample(), damage=1)
    with pytest.raises(InputError, match="the checksum of samples/1_epoch_1.json does not match"):
        read_file(path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match="cannot be read .File is not a zip file"):
        read_file(path)


def test_inspects_content_may_come_in_parts(tmp_path):
    parts = [{"type": "reasoning", "reasoning": "5"}, {"type": "text", "text": "51"}]
    assert inspect(tmp_path, sample(content=parts)).frame["answer"].to_list() == ["51"]


def test_a_verdict_in_between_is_not_rounded(tmp_path):
    with pytest.raises(InputError, match=r"row 1: its verdict is the number 0\.5"):
        inspect(tmp_path, sample(value=0.5))


def test_several_scorers_must_be_chosen_from(tmp_path):
    two = sample(scores={"match": {"value": "C"}, "judge": {"value": "I"}})
    with pytest.raises(
        InputError, match=r"several verdicts \(scores.match.value, scores.judge.value\); name one"
    ):
        inspect(tmp_path, two)
    found = inspect(tmp_path, two, label="scores.judge.value")
    assert found.frame["correct"].to_list() == [False]


def test_epochs_are_answers_of_their_own(tmp_path):
    found = inspect(tmp_path, sample(), sample(epoch=2))
    assert found.frame["example_id"].to_list() == ["1", "1#epoch-2"]


def lm_eval(doc_id=0, text=" 51", right=1, name="none", **more):
    return {
        "doc_id": doc_id,
        "doc": {"question": "how many?", "ID": f"svamp-{doc_id}"},
        "target": "51",
        "arguments": {"gen_args_0": {"arg_0": "Q: how many?\nA:", "arg_1": {"until": ["\n"]}}},
        "resps": [[text]],
        "filtered_resps": [text.strip()],
        "filter": name,
        "metrics": ["exact_match"],
        "exact_match": right,
    } | more


def test_lm_eval_gives_prompt_text_and_label_and_no_trace(tmp_path):
    row = read_file(write(tmp_path / "samples_t.jsonl", [lm_eval()])).frame.row(0, named=True)
    assert row["example_id"] == "0"
    assert row["prompt"] == "Q: how many?\nA:"
    assert row["answer"] == " 51"
    assert row["correct"] is True
    assert row["surprisal"] is None
    assert row["lacks"] == "no log-probabilities are given"


def test_a_response_that_lm_eval_kept_gives_the_trace(tmp_path):
    tokens = {"content": [token("51", -0.25, TWO)]}
    chat = {"message": {"content": "51"}, "finish_reason": "stop", "logprobs": tokens}
    old = {"tokens": ["51"], "token_logprobs": [-0.25], "top_logprobs": [dict(TWO)]}
    for choice in (chat, {"text": "51", "finish_reason": "stop", "logprobs": old}):
        kept = {"response": {"model": "m", "choices": [choice]}}
        arguments = {"gen_args_0": {"arg_0": "Q:", "arg_1": {"until": ["\n"]}, "arg_2": kept}}
        path = write(tmp_path / "a.jsonl", [lm_eval(arguments=arguments)])
        row = read_file(path, Reading(vocabulary=1000)).frame.row(0, named=True)
        assert row["surprisal"] == pytest.approx([0.25])
        assert row["entropy"] is not None
        assert (row["prompt"], row["answer"], row["model"]) == ("Q:", "51", "m")
        assert row["correct"] is True


@pytest.mark.parametrize("response", [{}, {"choices": {}}, {"choices": [5]}])
def test_a_kept_response_without_a_choice_is_one_sentence(tmp_path, response):
    arguments = {"gen_args_0": {"arg_0": "Q:", "arg_1": {"response": response}}}
    with pytest.raises(InputError, match="row 1: as lm_eval, choices"):
        read_file(write(tmp_path / "a.jsonl", [lm_eval(arguments=arguments)]))


def test_older_files_of_lm_eval_list_the_arguments(tmp_path):
    old = lm_eval(arguments=[["Q: how many?\nA:", {"until": ["\n"]}]])
    found = read_file(write(tmp_path / "a.jsonl", [old]))
    assert found.frame["prompt"].to_list() == ["Q: how many?\nA:"]


def test_a_file_with_two_filters_asks_for_one(tmp_path):
    rows = [lm_eval(name="strict-match"), lm_eval(name="flexible-extract", right=0)]
    path = write(tmp_path / "a.jsonl", rows)
    with pytest.raises(
        InputError, match="duplicate id '0', under another filter: name one as 'filter'"
    ):
        read_file(path)
    with path.open("a") as file:
        file.write("7\n")  # a row that is no object, and so of no filter
    found = read_file(path, Reading(filter="flexible-extract", wrong_rows="skip"))
    assert found.frame["correct"].to_list() == [False] and len(found.wrong_rows) == 1


def test_ids_of_lm_eval_can_be_the_documents_own(tmp_path):
    path = write(tmp_path / "a.jsonl", [lm_eval(3)])
    assert read_file(path, Reading(id="doc.ID")).frame["example_id"].to_list() == ["svamp-3"]


def repeated(texts, filtered, **more):
    """A document that was asked several times; the harness keeps the first response."""
    tokens = {"content": [token("51", -0.25, TWO)]}
    choice = {"message": {"content": texts[0]}, "finish_reason": "stop", "logprobs": tokens}
    kept = {"response": {"model": "m", "choices": [choice]}}
    arguments = {"gen_args_0": {"arg_0": "Q:", "arg_1": {"until": ["\n"]}, "arg_2": kept}}
    return lm_eval(resps=[texts], filtered_resps=filtered, arguments=arguments, **more)


def test_each_response_of_a_repeated_document_is_an_answer(tmp_path, caplog):
    path = write(tmp_path / "a.jsonl", [repeated(["51", "52", "51"], ["51"]), lm_eval(1)])
    caplog.set_level("INFO", "tracecal")
    frame = read_file(path, Reading(vocabulary=1000)).frame
    assert frame["example_id"].to_list() == ["0", "0#choice-2", "0#choice-3", "1"]
    assert frame["answer"].to_list() == ["51", "52", "51", " 51"]
    assert frame["group_id"].to_list() == ["0", "0", "0", None]
    assert frame["correct"].to_list() == [True, None, None, True]
    assert frame["surprisal"].is_not_null().to_list() == [True, False, False, False]
    assert frame["prompt"].to_list()[:3] == ["Q:"] * 3
    assert "1 rows hold 3 answers" in caplog.text
    first = read_file(path, Reading(vocabulary=1000, choices="first")).frame
    assert first["example_id"].to_list() == ["0", "1"]
    assert "the first of several choices is read in 1 rows" in caplog.text


@pytest.mark.parametrize("filtered", ["52", ["52"], ["51", "52"], [["51", "52", "52"]]])
def test_a_metric_of_a_vote_is_no_verdict_on_the_first_response(tmp_path, filtered):
    path = write(tmp_path / "a.jsonl", [repeated(["51", "52", "52"], filtered)])
    for choices in ("all", "first"):
        frame = read_file(path, Reading(vocabulary=1000, choices=choices)).frame
        assert frame["correct"].null_count() == frame.height


def test_a_task_of_lm_eval_that_generates_nothing_is_refused(tmp_path):
    row = lm_eval(resps=[[[-1.2, False]]])
    with pytest.raises(InputError, match="its response is not text"):
        read_file(write(tmp_path / "a.jsonl", [row]))


def test_a_small_log_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tracecal.answers.log_file.MOST_UNPACKED", 2**20)
    path = tmp_path / "small.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("samples/a.json", " " * 2**24)
    with pytest.raises(InputError, match=r"small\.eval would unpack to 16,777,216 bytes"):
        read_file(path)
