"""What `import tracecal` offers: names, docstrings and their examples, and what it costs."""

import inspect
import math
import multiprocessing
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tracecal
from support.labelled_answers import answers
from support.log_rows import chat, token
from support.running import REPOSITORY
from tracecal.calibrator.schema import CalibratorFile

SCRIPTS = REPOSITORY / "workflow_scripts"
NAMES = {
    *("read_answers", "trace_features", "trace_score"),
    *("calibrate", "check", "Calibrator", "InputError", "__version__"),
    *("pick", "LabelSearch", "agree", "plan", "explore"),
    *("Monitors", "Reading", "explain_reading", "replay"),
}
METHODS = {
    "Calibrator": {
        *("load", "save", "score", "score_trace", "score_response", "score_response_parts"),
        *("card", "report", "predictor", "reading"),
    },
    "LabelSearch": {"state"},
    "Monitors": {"watch", "judge", "alarms", "summary", "close"},
}


@pytest.fixture
def files(tmp_path, monkeypatch, content):
    """A folder with the files that examples name."""
    monkeypatch.chdir(tmp_path)
    answers(120).write_ndjson("labelled.jsonl")
    answers(6, seed=1).with_columns(correct=None).write_ndjson("new.jsonl")
    known = content | {"fitted_on": content["fitted_on"] | {"vocabulary": 100_000}}
    CalibratorFile.parse(known, "C.json").write("C.json")
    return tmp_path


def public():
    """Each public function, class and method, by name."""
    for name in sorted(NAMES - {"InputError", "__version__"}):
        yield name, getattr(tracecal, name)
        for method in sorted(METHODS.get(name, set()) - {"alarms", "close", "reading", "summary"}):
            yield f"{name}.{method}", getattr(getattr(tracecal, name), method)


def test_the_public_names_are_these():
    assert set(tracecal.__all__) == set(dir(tracecal)) == NAMES
    for name, methods in METHODS.items():
        own = {one for one in vars(getattr(tracecal, name)) if not one.startswith("_")}
        assert own == methods, name
    with pytest.raises(AttributeError, match="no attribute 'calibarte'"):
        _ = tracecal.calibarte


def test_importing_it_loads_no_library_and_is_quick():
    program = (
        "import sys, time; before = {*sys.modules}; start = time.process_time(); import tracecal; "
        "took = time.process_time() - start; "
        "print(took, *sorted({name.split('.')[0] for name in {*sys.modules} - before}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    took, *loaded = run.stdout.split()
    assert float(took) < 0.3
    assert set(loaded) - {*sys.stdlib_module_names} == {"tracecal"}


def test_it_is_inspected_where_no_extra_is_installed():
    """`hasattr`, `inspect.getmembers` and `help` look every name up, that of `replay` included."""
    program = """
import inspect, pydoc, sys
EXTRAS = "torch transformers safetensors sklearn matplotlib aiohttp prometheus_client"
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS.split():
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NotInstalled())
import tracecal
assert hasattr(tracecal, "replay")
assert {name for name, _ in inspect.getmembers(tracecal)} >= {*tracecal.__all__}
print(pydoc.plain(pydoc.render_doc(tracecal)))
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    for name in NAMES - {"__version__"}:
        assert re.search(rf"\b{name}\b", run.stdout), name


def test_using_it_loads_no_model_library():
    program = "import sys, tracecal; tracecal.Monitors; tracecal.plan; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"torch", "transformers", "snakemake", "matplotlib", "aiohttp", "pandas", "sklearn"}
    assert heavy.isdisjoint(run.stdout.split())


@pytest.mark.parametrize("name", [name for name, _ in public()])
def test_a_docstring_has_the_parts_of_numpydocs(name):
    documented = dict(public())[name]
    text = inspect.getdoc(documented)
    headings = re.findall(r"^(\w+)\n-+$", text, re.M)
    order = ["Parameters", "Attributes", "Returns", "Raises", "Examples"]
    assert headings == [one for one in order if one in headings]
    assert text.split("\n")[0].endswith((".", ":")) or "\n\n" in text
    if name != "replay":
        assert "Examples" in headings
    parameters = [
        one for one in inspect.signature(documented).parameters if one not in ("self", "content")
    ]
    section = text.partition("Parameters\n----------\n")[2]
    told = re.findall(r"^([*\w][\w, *]*?)(?: : .*)?$", section, re.M)
    listed = {one.strip().lstrip("*") for line in told for one in line.split(",")}
    if name != "Calibrator":
        assert {*parameters} <= listed


@pytest.mark.parametrize(
    "of",
    [
        lambda frame: frame,
        lambda frame: frame.lazy(),
        lambda frame: frame.to_pandas(),
        lambda frame: frame.to_arrow(),
        lambda frame: frame.to_dicts(),
        lambda frame: frame.drop("lacks", "top_k", "entropy_lower").rename({"example_id": "id"}),
    ],
    ids=["polars", "lazy", "pandas", "arrow", "rows", "own columns"],
)
def test_answers_are_taken_in_any_form(of, files):
    known = tracecal.read_answers("labelled.jsonl")
    found = tracecal.read_answers(of(known))
    columns = ["example_id", "surprisal", "entropy", "correct", "model", "stop_token"]
    assert found.select(columns).equals(known.select(columns))


def test_answers_of_no_form_are_refused():
    for given in (3, {"id": "a"}):
        with pytest.raises(tracecal.InputError, match="answers are a path, a frame"):
            tracecal.read_answers(given)
    frame = tracecal.read_answers([{"id": "a", "logprobs": [-1.0]}])
    with pytest.raises(tracecal.InputError, match="read already, so model would do nothing"):
        tracecal.read_answers(frame, reading=tracecal.Reading(model="m"))


def test_what_a_file_says_of_its_answers_stays_with_a_frame(files):
    rows = [
        {"id": "a", "answer": '{"x": 1}', "logprobs": [-1.0], "correct": {"x": True}},
        {"id": "b", "answer": '{"x": 2}', "logprobs": [-1.0], "wrong_spans": [[1, 3]]},
    ]
    frame = tracecal.read_answers(rows)
    again = tracecal.read_answers(frame)
    assert again.equals(frame)
    assert frame["part_labels"].to_list() == [
        {"correct": [{"name": "x", "correct": True}], "wrong_spans": None},
        {"correct": None, "wrong_spans": [[1, 3]]},
    ]
    two = frame.with_columns(task=pl.Series(["s", "t"]))
    with pytest.raises(tracecal.InputError, match=r"differ in task \(s, t\)"):
        tracecal.read_answers(two)


def test_features_and_scores_are_those_of_the_equations():
    s, h = [[0.5, 0.25, 1.0], [0.125]], [[2.0, 1.0, 0.5], None]
    features = tracecal.trace_features(s, h)
    assert features["log_length"].to_list() == [np.log(3), 0.0]
    assert features["mean_entropy"].to_list() == [3.5 / 3, None]
    weights = np.exp(-np.arange(3) / 2)
    risk = 0.4 * np.dot(weights, h[0]) / weights.sum() + 0.4 * 3.5 / 3 + 0.2 * 1.75 / 3**0.25
    score = tracecal.trace_score(s, h)
    assert score.to_list() == [pytest.approx(np.exp(-risk)), None]
    assert tracecal.trace_score(s[0], h[0]) == score[0]
    assert tracecal.trace_score(pl.Series(s), pl.Series(h)).equals(score)
    assert tracecal.trace_score(pa.array(s).to_pandas(), pa.array(h).to_pandas()).equals(score)


@pytest.mark.parametrize(
    ("surprisal", "entropy"),
    [([[]], [[]]), ([[1.0]], [[1.0, 2.0]]), ([[-1.0]], [[1.0]]), ([[1.0]], [[np.nan]])],
)
def test_unsound_traces_are_refused(surprisal, entropy):
    with pytest.raises(tracecal.InputError, match=r"answer 0 \(counted from 0\)"):
        tracecal.trace_features(surprisal, entropy)


CHANGES = {
    "an id twice": (pl.lit("a").alias("example_id"), "a row has no example_id, or two have"),
    "no id": (pl.lit(None, pl.String).alias("example_id"), "a row has no example_id"),
    "half right": (pl.lit(0.5).alias("correct"), "correct holds another number than 0 and 1"),
    "a word": (pl.lit("yes").alias("correct"), "read the answers again"),
    "a text": (pl.lit("x").alias("surprisal"), "read the answers again"),
    "negative": (pl.lit([-0.5]).alias("surprisal"), "surprisal holds a number that is not finite"),
    "infinite": (pl.lit([math.inf]).alias("entropy"), "entropy holds a number that is not finite"),
}


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES)
def test_a_frame_that_was_changed_after_it_was_read_is_a_sentence(change, said):
    frame = tracecal.read_answers(answers(30))
    with pytest.raises(tracecal.InputError, match=said):
        tracecal.read_answers(frame.with_columns(change))


def test_scalars_of_numpy_are_ids_and_verdicts():
    rows = [
        {"id": np.int64(n), "answer": "a", "surprisal": np.array([0.5]), "correct": np.bool_(n)}
        for n in range(2)
    ]
    frame = tracecal.read_answers(rows)
    assert frame.select("example_id", "correct").rows() == [("0", False), ("1", True)]


CALLS = {
    "score": lambda calibrator: calibrator.score("new.jsonl"),
    "read": lambda _: tracecal.read_answers("new.jsonl"),
    "watch": lambda calibrator: tracecal.Monitors(calibrator, "s.db").watch("new.jsonl"),
    "features": lambda _: tracecal.trace_features([[0.5]], [[1.0]]),
    "plan": lambda calibrator: tracecal.plan(0.3, calibrator=calibrator, most=50, draws=2),
}


def say_error(pipe, call, calibrator):
    try:
        call(calibrator)
    except tracecal.InputError as error:
        pipe.send(str(error))


def sent_by_forked(target, *arguments):
    """What a forked process sends, or that it waits."""
    forking = multiprocessing.get_context("fork")
    receiver, sender = forking.Pipe(duplex=False)
    child = forking.Process(target=target, args=(sender, *arguments))
    child.start()
    sent = receiver.recv() if receiver.poll(20) else "it waits"
    child.kill()
    return sent


@pytest.mark.parametrize("name", CALLS)
def test_a_forked_process_says_that_it_lacks_threads(files, name):
    """Polars' threads stay in the parent, and a child that needs them would wait for ever."""
    calibrator = tracecal.Calibrator.load("C.json")
    calibrator.score("new.jsonl")
    told = sent_by_forked(say_error, CALLS[name], calibrator)
    assert "forked" in told and "'spawn'" in told


def confidence_of(calibrator, text):
    response, reading = chat([token(text, -0.1)], text), tracecal.Reading(stop_token="included")
    return calibrator.score_response(response, {}, error_rate=0.5, reading=reading)


def send_confidence(pipe, calibrator, text):
    pipe.send(confidence_of(calibrator, text))


@pytest.mark.parametrize("text", ["a", "a\nQuestion: b"])
def test_a_forked_process_scores_a_response(files, text):
    """One answer takes no threads, also one that runs on into another question."""
    calibrator = tracecal.Calibrator.load("C.json")
    calibrator.score("new.jsonl")
    confidence = sent_by_forked(send_confidence, calibrator, text)
    assert confidence == confidence_of(calibrator, text)
    assert confidence.probability is not None
