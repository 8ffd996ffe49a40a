"""`tracecal watch`: its state, what bad input gets, and kills."""

import json
import math
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tracecal
from support.labelled_answers import answers, batch_of_answers, predictor_of, stored
from tracecal.calibrator.training_set import make_training_set
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.fits.fit_settings import FitSettings
from tracecal.io.files import write_json
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.database import StateDatabase, _checksum
from tracecal.monitoring.state import AlarmSettings, as_json, initial_state, watch
from tracecal.monitoring.traffic import key_of, request_and_choice

SCRIPTS = Path(__file__).resolve().parents[3] / "workflow_scripts"
WATCH = ["watch", "--calibrator", "C.json", "--state", "state.db", "--error-rate", "0.5"]


@pytest.fixture
def folder(content, tmp_path, monkeypatch):
    """A calibrator, answers like its own, others that are riskier, and labels."""
    monkeypatch.chdir(tmp_path)
    write_json(content, "C.json")
    same = answers(420, seed=9).filter(pl.col("entropy").list.max() < 6).head(400)
    renamed = same.with_columns(example_id="new" + pl.col("example_id"))
    renamed.drop("correct").write_ndjson("same.jsonl")
    surer = pl.col("surprisal", "entropy").list.eval(pl.element() * 0.2)
    other = renamed.with_columns(surer, example_id="other" + pl.col("example_id"))
    other.drop("correct").write_ndjson("other.jsonl")
    return tmp_path


def content_of(path="state.db"):
    with sqlite3.connect(path) as connection:
        told = connection.execute("SELECT content FROM state").fetchone()[0]
        rows = connection.execute("SELECT id, place, probability, length, kept FROM answers")
        labels = connection.execute("SELECT * FROM labels")
        return json.loads(told), sorted(rows.fetchall()), sorted(labels.fetchall())


def batch(n, seed=0):
    rng = np.random.default_rng(seed)
    return Batch(rng.random(n), rng.integers(1, 9, n).astype(float), np.ones(n))


def names(n, first=0):
    return [f"a{place}" for place in range(first, first + n)]


def alarmed(command):
    """Whether the command ends as after an alarm."""
    with pytest.raises(SystemExit) as status:
        main(command)
    return status.value.code == 3


def test_traffic_like_the_calibrations_raises_no_alarm_and_other_traffic_does(folder, capsys):
    assert main([*WATCH, "--answers", "same.jsonl"]) == 0
    told = capsys.readouterr().out
    assert "400 of 400 answers watched, one of each question" in told
    assert told.endswith("no alarm\n")
    assert alarmed([*WATCH, "--answers", "other.jsonl"])
    told = capsys.readouterr().out
    assert "800 of 800 answers watched" in told
    assert "400 new answers, 400 of them watched" in told
    assert "independent of one another" in told
    assert "ALARM: the probability changed: noticed at answer" in told


def test_after_an_alarm_three_lines_say_what_changed_where_and_what_to_do(folder, capsys):
    files = ("same.jsonl", "other.jsonl")
    rows = [json.loads(line) for name in files for line in Path(name).read_text().splitlines()]
    began = 1_772_323_200  # 1 March 2026
    timed = [row | {"created": began + 3600 * place} for place, row in enumerate(rows)]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, timed)))
    assert alarmed([*WATCH, "--answers", "log.jsonl"])
    told = capsys.readouterr().out.splitlines()
    changed, where, advice = told[-3:]
    numbers = re.fullmatch(
        r"changed: mean probability (\S+) before answer (\d+), (\S+) since; (\d+) % kept, (\d+) % since",
        changed,
    )
    before, place, since, kept_before, kept_since = map(float, numbers.groups())
    _, stored_answers, _ = content_of()
    by_place = {row[1]: row for row in stored_answers}
    parts = [
        np.array([by_place[n][2:] for n in span], dtype=float)
        for span in (range(1, int(place)), range(int(place), 801))
    ]
    assert 380 < place < 420, "the second half is other"
    assert [before, since] == pytest.approx([part[:, 0].mean() for part in parts], abs=5e-4)
    shares = [100 * np.nanmean(part[:, 2]) for part in parts]
    assert [kept_before, kept_since] == pytest.approx(shares, abs=0.51)
    assert where.startswith(f"where: log.jsonl, answer {by_place[int(place)][0]!r} of 2026-03-1")
    assert where.endswith("UTC; the file is from 2026-03-01 00:00 to 2026-04-03 07:00")
    assert advice.startswith("to do: ") and "new --state" in advice
    assert alarmed([*WATCH, "--answers", "same.jsonl"]), "an alarm stays"
    assert "watched in an earlier call" in capsys.readouterr().out


def test_traffic_that_is_unlike_from_the_first_answer_is_compared_with_the_calibration(
    folder, capsys
):
    assert alarmed([*WATCH, "--answers", "other.jsonl"])
    changed, where, _ = capsys.readouterr().out.splitlines()[-3:]
    assert "in the calibration" in changed and "answer 'othernewa0000'" in where


@pytest.mark.parametrize("one_per", [[], ["--one-per", "model"]])
def test_a_file_that_is_read_in_frames_is_watched_alike(folder, monkeypatch, one_per):
    command = [*WATCH, "--answers", "same.jsonl", *one_per]
    assert main(command) == 0
    _, whole, _ = content_of()
    Path("state.db").unlink()
    monkeypatch.setattr("tracecal.answers.answers.FRAME", 7)
    assert main(command) == 0
    assert content_of()[1] == whole


def test_a_file_that_is_read_again_changes_nothing(folder, capsys):
    assert main([*WATCH, "--answers", "same.jsonl"]) == 0
    before = content_of()
    assert main([*WATCH, "--answers", "same.jsonl"]) == 0
    assert content_of() == before
    assert (
        "left out: 400 answers whose id came before, 0 whose id came with other"
        in capsys.readouterr().out
    )


def test_the_reference_is_of_answers_that_tested_thresholds():
    frame = answers(200)
    training = make_training_set(frame, "t", FitSettings())
    fitted = predictor_of(stored(frame, "trace_plus"), "trace_plus", "made up")
    tested = training.frame.filter(side="test").sort("rank").select("example_id")
    among = tested.join(frame, on="example_id", maintain_order="left")
    expected = batch_of_answers(among, fitted, None)
    assert fitted.reference.probability == pytest.approx(expected.probability.tolist())
    assert [*fitted.reference.length] == expected.length.tolist()


def test_the_reference_is_one_answer_of_each_question_and_not_the_shortest():
    frame = answers(480).sort(pl.col("surprisal").list.len(), maintain_order=True)
    of_four = [f"g{place % 120:03}" for place in range(480)]
    named = pl.Series("example_id", [f"{one}-{n // 120}" for n, one in enumerate(of_four)])
    frame = frame.with_columns(named, group_id=pl.Series(of_four))
    reference = predictor_of(stored(frame, "trace_plus"), "trace_plus", "made up").reference
    training = make_training_set(frame, "t", FitSettings())
    assert len(reference.length) == training.frame.filter(side="test")["rank"].n_unique()
    assert 0.1 < np.mean(np.array(reference.length) > 6) < 0.9


def test_the_state_is_that_of_the_monitors(tmp_path):
    store, settings = (
        StateDatabase(tmp_path / "s.db", "x", AlarmSettings(), seed=7),
        AlarmSettings(),
    )
    whole = batch(90)
    for first in (0, 30, 60):
        assert store.add_answers(names(30, first), whole[first : first + 30]).new == 30
    assert as_json(store.state) == as_json(watch(initial_state(settings, seed=7), whole))


def test_each_state_draws_a_seed_and_keeps_it(tmp_path):
    seeds = [
        StateDatabase(tmp_path / name, "x", AlarmSettings()).state.seed for name in ("a", "b", "a")
    ]
    assert seeds[0] == seeds[2] != seeds[1]


@pytest.mark.parametrize("number", ['"seed": ', '"n_answers": '])
def test_a_digit_of_a_state_that_was_changed_is_noticed(tmp_path, number):
    store = StateDatabase(tmp_path / "s.db", "x", AlarmSettings(), seed=7123)
    store.add_answers(["a", "b"], batch(2))
    store.connection.close()
    with sqlite3.connect(tmp_path / "s.db") as connection:
        (content,) = connection.execute("SELECT content FROM state").fetchone()
        place = content.index(number) + len(number)
        changed = content[:place] + "9" + content[place + 1 :]
        connection.execute("UPDATE state SET content = ?", (changed,))
    with pytest.raises(InputError, match="s.db is damaged: its state does not match its checksum"):
        StateDatabase(tmp_path / "s.db", "x", AlarmSettings())


def test_a_state_of_an_earlier_version_is_refused(tmp_path):
    store = StateDatabase(tmp_path / "s.db", "x", AlarmSettings())
    content = store._content()
    content["state"]["promise"] = content["state"].pop("settings")
    text = json.dumps(content | {"checksum": _checksum(content)})
    store.connection.execute("UPDATE state SET content = ?", (text,))
    store.connection.close()
    with pytest.raises(InputError, match="s.db watches another calibrator, or with other settings"):
        StateDatabase(tmp_path / "s.db", "x", AlarmSettings())


@pytest.mark.parametrize(
    "forge",
    [
        lambda content: content["state"].update(n_watched=1e18),
        lambda content: content["state"].update(seed=[]),
        lambda content: content["state"]["errors"].update(alarm="x\x1b[2J"),
        lambda content: content["state"]["errors"].update(evidence=math.nan),
        lambda content: content["state"]["monitors"]["length"].update(counts=[1]),
        lambda content: content["state"]["dependence"]["kept"]["recent_ranks"].append(2),
        lambda content: content["state"]["dependence"].update(kept={"wealth": [True] * 3}),
        lambda content: content.update(state=[]),
    ],
)
def test_a_forged_state_is_refused_in_a_sentence_though_its_checksum_fits(tmp_path, forge):
    store = StateDatabase(tmp_path / "s.db", "x", AlarmSettings())
    content = store._content()
    forge(content)
    text = json.dumps(content | {"checksum": _checksum(content)})
    store.connection.execute("UPDATE state SET content = ?", (text,))
    store.connection.close()
    with pytest.raises(InputError, match="s.db cannot be used as a state of monitors .its values"):
        _ = StateDatabase(tmp_path / "s.db", "x", AlarmSettings()).state


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE answers SET probability = 'x'",
        "UPDATE answers SET kept = 7",
        "UPDATE labels SET correct = 'maybe'",
        "UPDATE labels SET used = 'evil'",
        "DELETE FROM answers",
        "DELETE FROM state",
    ],
)
def test_forged_rows_of_a_state_are_refused_in_a_sentence(tmp_path, change):
    store = StateDatabase(tmp_path / "s.db", "x", AlarmSettings())
    store.add_answers(["a", "b"], batch(2))
    store.add_labels([("a", True)])
    store.connection.execute(change)
    store.connection.close()
    with pytest.raises(InputError, match="s.db cannot be used as a state of monitors .its values"):
        StateDatabase(tmp_path / "s.db", "x", AlarmSettings())


def test_a_flipped_bit_of_a_state_is_refused_or_leaves_its_monitors_as_they_are(tmp_path):
    store = StateDatabase(tmp_path / "s.db", "x", AlarmSettings(), seed=7)
    store.add_answers(names(9), batch(9))
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    expected = as_json(store.state)
    store.close()
    whole, draw, n_refused = (tmp_path / "s.db").read_bytes(), random.Random(49), 0
    for number, place in enumerate(draw.sample(range(8 * len(whole)), 100)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        path = tmp_path / f"{number}.db"
        path.write_bytes(flipped)
        try:
            assert as_json(StateDatabase(path, "x", AlarmSettings()).state) == expected, place
        except InputError:
            n_refused += 1
    assert n_refused > 5


def test_of_a_requests_choices_the_first_is_watched_whichever_comes_first(tmp_path):
    store = StateDatabase(tmp_path / "s.db", "x", AlarmSettings(), seed=7)
    ids, keys, choices = ["a#1", "a", "b", "b#1", "c#2"], ["a", "a", "b", "b", "c"], [1, 0, 0, 1, 2]
    whole = batch(5)
    added = store.add_answers(ids[:2], whole[:2], keys[:2], choices[:2])
    assert (added.new, added.watched) == (2, 1)
    assert store.add_answers(ids, whole, keys, choices).watched == 1
    assert (store.state.n_watched, store.state.n_answers) == (2, 5)
    expected = watch(initial_state(AlarmSettings(), seed=7), whole[np.array([1, 2])])
    assert store.state.monitors["length"].evidence == expected.monitors["length"].evidence


def test_of_answers_that_share_a_key_the_first_is_watched_and_its_first_label_counts(tmp_path):
    store = StateDatabase(tmp_path / "s.db", "x", AlarmSettings(error_rate=0.2))
    keys = ["u", "u", "a2", "v", "u"]
    store.add_labels([("a4", False), ("a1", True)])
    assert store.add_answers(names(5), batch(5), keys).watched == 3
    assert store.add_answers(names(1, 5), batch(1), ["v"]).watched == 0
    counts = store.counts()
    assert (counts["used"], counts["same key"]) == (1, 1)
    store.add_labels([("a0", False), ("a2", False), ("a5", True), ("a3", True)])
    counts = store.counts()
    assert (counts["used"], counts["same key"]) == (3, 3)
    assert store.state.errors.n_values == 3


def test_labels_of_one_file_are_judged_in_the_order_of_their_answers(tmp_path):
    """Wrong answers are often told sooner: such an order alone would raise an alarm."""
    order = {"as answered": range(60), "wrong ones first": sorted(range(60), key=lambda n: n % 12)}
    states = []
    for name, places in order.items():
        store = StateDatabase(
            tmp_path / name, "x", AlarmSettings(error_rate=0.1, chance=0.2), seed=1
        )
        store.add_answers(names(60), batch(60))
        store.add_labels([(f"a{n}", n % 12 > 0) for n in places])
        states.append(as_json(store.state))
    assert states[0] == states[1]
    assert states[0]["errors"]["alarm"] is None


def test_rows_say_what_answers_share():
    row = {"id": "x#1", "request": {"user": "Ann"}, "response": {"id": "x"}}
    assert request_and_choice("x#1", row) == ("x", 1)
    assert request_and_choice("x#1", row | {"response": {"id": "y"}}) == ("x#1", 0)
    assert request_and_choice("x", row) == ("x", 0)
    assert key_of(row, None) is key_of(row, "request.seed") is None
    assert key_of(row, "request.user") == key_of({"request": {"user": "Ann"}}, "request.user")
    assert key_of(row, "request.user") not in (key_of(row, "request"), key_of(row, "id"))
    assert "Ann" not in key_of(row, "request.user")


def test_one_answer_of_each_key_of_a_file(folder, capsys, caplog):
    rows = [json.loads(line) for line in Path("same.jsonl").read_text().splitlines()]
    own = [row | {"user": place // 4} for place, row in enumerate(rows)]
    Path("users.jsonl").write_text("\n".join(map(json.dumps, own)))
    given = [*WATCH, "--answers", "users.jsonl"]
    assert main([*given, "--one-per", "user"]) == 0
    assert "100 of 400 answers watched, one of each value of user" in capsys.readouterr().out
    assert main(given) == 1
    assert "with other settings" in caplog.text
    other = ["none.db" if word == "state.db" else word for word in given]
    assert main([*other, "--one-per", "usr"]) == 1
    assert "all 400 answers have nothing at --one-per usr" in caplog.text
    assert not Path("none.db").exists()


def test_alike_neighbours_are_told(folder, capsys):
    rows = [json.loads(line) for line in Path("same.jsonl").read_text().splitlines()]
    pairs = [row | {"example_id": f"{row['example_id']}{k}"} for row in rows for k in "ab"]
    Path("pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    with pytest.raises(SystemExit, match="3"):  # one of the false alarms that it warns of
        main([*WATCH, "--answers", "pairs.jsonl"])
    told = capsys.readouterr().out
    assert "WARNING: neighbouring answers are alike in the probability, noticed at answer" in told
    assert "begin a new --state with --one-per and the path of what they share" in told


def test_ids_and_labels_twice_late_early_and_contradicting_are_counted(tmp_path):
    store = StateDatabase(tmp_path / "s.db", "x", AlarmSettings(error_rate=0.2))
    kept = Batch(np.full(3, 0.5), np.ones(3), np.array([1.0, 0.0, np.nan]))
    early = store.add_labels([("a0", False), ("b", True)])
    assert (early.new, store.state.errors.n_values) == (2, 0)
    store.add_answers(["a0", "a1", "a2"], kept)
    assert store.state.errors.n_values == 1
    added = store.add_labels(
        [("a0", False), ("a0", True), ("a1", True), ("a1", True), ("a2", True)]
    )
    assert (added.new, added.repeated, added.contradicting) == (2, 2, 1)
    counts = store.counts()
    assert (counts["used"], counts["waiting"], counts["not kept"]) == (1, 1, 2)
    again = store.add_answers(
        ["a0", "a1", "b"], Batch(np.array([0.5, 0.7, 0.5]), np.ones(3), np.array([1.0, 0, 1]))
    )
    assert (again.new, again.repeated, again.contradicting) == (1, 1, 1)
    assert store.state.errors.n_values == 2
    assert store.state.n_watched == 4


def test_labels_of_a_file_raise_an_alarm(folder, capsys, caplog):
    assert main([*WATCH, "--answers", "same.jsonl"]) == 0
    lines = [json.dumps({"id": f"newa{place:04}", "correct": False}) for place in range(300)]
    Path("labels.jsonl").write_text("\n".join([*lines, '{"id": "newa0001", "correct": null}', "{"]))
    capsys.readouterr()
    assert alarmed([*WATCH, "--answers", "same.jsonl", "--labels", "labels.jsonl"])
    told = capsys.readouterr().out
    assert "ALARM: the error rate among kept answers is above 0.5" in told
    changed, advice = told.splitlines()[-2:]
    n_wrong = sum(use == "used" for *_, use in content_of()[2])
    assert (
        changed
        == f"changed: {n_wrong} of {n_wrong} judged answers that were kept are wrong (100 %)"
    )
    assert advice.startswith("to do: ")
    assert "1 invalid row(s): line 302" in caplog.text


def test_another_calibrator_or_setting_and_another_file_are_refused(folder, caplog):
    assert main([*WATCH, "--answers", "same.jsonl"]) == 0
    with pytest.raises(InputError, match="the calibrator has no guarantee of seq_logp"):
        tracecal.Monitors("C.json", "state.db", error_rate=0.5, estimator="seq_logp")
    assert main([*WATCH, "--answers", "same.jsonl", "--answers-per-alarm", "200"]) == 1
    assert caplog.text.count("watches another calibrator, or with other settings") == 1
    Path("state.db").write_text("not a state")
    Path("state.db-wal").unlink(missing_ok=True)
    assert main([*WATCH, "--answers", "same.jsonl"]) == 1
    assert "cannot be used as a state of monitors" in caplog.text


def test_a_deleted_file_is_noticed(tmp_path):
    store = StateDatabase(tmp_path / "s.db", "x", AlarmSettings())
    (tmp_path / "s.db").unlink()
    with pytest.raises(InputError, match="was deleted"):
        store.add_answers(["a"], batch(1))


def test_one_reads_while_another_writes(tmp_path):
    writer = StateDatabase(tmp_path / "s.db", "x", AlarmSettings())
    reader = StateDatabase(tmp_path / "s.db", "x", AlarmSettings())
    writer.add_answers(names(5), batch(5))
    writer.connection.execute("BEGIN IMMEDIATE")
    assert reader.state.n_watched == 5
    writer.connection.execute("ROLLBACK")
    assert reader.add_answers(names(5, 3), batch(5)).new == 3
    assert writer.state.n_watched == 8


LOOP = """
import sys
import numpy as np
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.database import StateDatabase
from tracecal.monitoring.state import AlarmSettings
store = StateDatabase(sys.argv[1], "x", AlarmSettings(error_rate=0.2), seed=7)
rng = np.random.default_rng(0)
values = rng.random(200), rng.integers(1, 9, 200).astype(float), (rng.random(200) < 0.6) * 1.0
print("begun", flush=True)
for first in range(0, 200, 5):
    part = slice(first, first + 5)
    store.add_answers([f"a{n}" for n in range(first, first + 5)], Batch(*(v[part] for v in values)))
    store.add_labels([(f"a{n}", n % 7 > 0) for n in range(first, first + 5)])
"""


@pytest.mark.slow
def test_kills_leave_the_state_as_if_there_had_been_none(tmp_path):
    def begun(path):
        program = [sys.executable, "-c", LOOP, str(path)]
        environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
        process = subprocess.Popen(program, stdout=subprocess.PIPE, env=environment)
        process.stdout.readline()
        return process

    draw, killed = random.Random(1), 0
    for _ in range(2):
        process = begun(tmp_path / "killed.db")
        time.sleep(draw.uniform(0, 0.1))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
    for name in ("killed.db", "whole.db"):
        process = begun(tmp_path / name)
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert killed
    states = [content_of(tmp_path / name) for name in ("killed.db", "whole.db")]
    assert states[0] == states[1]
