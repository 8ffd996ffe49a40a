"""`serve --watch`: alarms and metrics, and failures that leave answers as they are."""

import multiprocessing
import time

import httpx2 as httpx
import numpy as np
import polars as pl
import pytest
from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from support import kills
from support.labelled_answers import answers, batch_of_answers
from support.log_rows import chat, token
from support.running import ASK, CHAT, READING, proxied
from support.upstream import Upstream
from tracecal.answers.answers import answers_in, read_file
from tracecal.answers.record import Record
from tracecal.errors import InputError
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.database import StateDatabase
from tracecal.monitoring.state import AlarmSettings
from tracecal.serving.proxy_metrics import Metrics
from tracecal.serving.proxy_settings import ProxySettings
from tracecal.serving.scorer import Scorer
from tracecal.serving.watcher import Watcher

KEPT = {"probability": 0.9, "keep": True, "reason": None, "error_rate": 0.5}


@pytest.fixture
def watching(of_top_k, tmp_path):
    def watcher(**more):
        given = {"upstream": "http://x", "watch": str(tmp_path / "s.db"), "answers_per_alarm": 1000}
        return Watcher(of_top_k, 0.5, ProxySettings(**given | more))

    return watcher


def shown(watcher, frame, factor=1.0):
    """The confidence of each answer, given one after the other and then watched."""
    told = []
    for row in frame.iter_rows(named=True):
        trace = (np.array(row[name]) * factor for name in ("surprisal", "entropy"))
        inputs = watcher.predictor.answer_inputs(Record("a", *trace))[0], len(row["surprisal"])
        told.append(watcher.observe({}, {}, KEPT, inputs))
    watcher.stop()
    watcher.run()
    return told


def samples(text):
    """By name and labels, as Prometheus' own parser reads them."""
    return {
        one.name
        + "".join(f'{{{label}="{value}"}}' for label, value in one.labels.items()): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def until(condition):
    end = time.monotonic() + 120
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("on_alarm", ["withhold", "warn"])
def test_after_an_alarm_answers_are_no_longer_kept_and_a_restart_knows_it(
    watching, on_alarm, caplog
):
    watcher = watching(on_alarm=on_alarm)
    assert shown(watcher, answers(150, seed=3)) == [KEPT] * 150
    assert watcher.reason is None
    shown(watcher, answers(150, seed=4), 0.1)
    assert "the probability changed" in watcher.reason
    assert caplog.text.count("ALARM") == 1
    again = watching(on_alarm=on_alarm)
    assert again.state.n_watched == 300
    confidence = again.observe({}, {}, KEPT, None)
    if on_alarm == "warn":
        assert confidence == KEPT
    else:
        assert confidence == KEPT | {"keep": None, "reason": again.reason}


def test_metrics_tell_of_it(watching):
    watcher = watching()
    shown(watcher, answers(60, seed=3))
    watcher.observe({}, {}, KEPT | {"probability": None, "keep": None}, None)
    told = samples(generate_latest(Metrics(watcher).registry).decode())
    assert told['tracecal_answers_total{keep="true"}'] == 60
    assert told['tracecal_answers_total{keep="unknown"}'] == 1
    assert told["tracecal_watching"] == 1
    assert told['tracecal_evidence_limit{monitor="probability"}'] == 8000
    assert told['tracecal_evidence{monitor="length"}'] == watcher.state.monitors["length"].evidence
    assert told['tracecal_request_seconds_bucket{le="+Inf"}'] == 0
    assert told['tracecal_state_answers{which="seen"}'] == 60
    assert told['tracecal_state_answers{which="watched"}'] == 60
    assert told["tracecal_neighbours_alike"] == 0


def test_one_answer_of_each_request_is_watched_or_of_each_value_that_the_user_names(watching):
    row = answers(1, seed=3).row(0, named=True)
    for one_per, expected in ((None, 6), ("request.user", 2)):
        watcher = watching(one_per=one_per, watch=f"{watching().path}{one_per}")
        inputs = (
            watcher.predictor.answer_inputs(Record("a", row["surprisal"], row["entropy"]))[0],
            3,
        )
        for place in range(6):
            request = {"user": f"Ann{place % 2}", "n": 3}
            for index in (2, 0, 1):
                answer = {"id": f"x{place}", "choices": [{"index": index}]}
                watcher.observe(answer, request, KEPT, inputs)
        watcher.stop()
        watcher.run()
        assert watcher.failure is None
        told = samples(generate_latest(Metrics(watcher).registry).decode())
        assert told['tracecal_state_answers{which="seen"}'] == 18
        assert told['tracecal_state_answers{which="watched"}'] == expected
        assert "Ann0" not in str(watcher.open_database().query("SELECT * FROM answers"))


def test_alike_neighbours_are_told_in_the_log_and_the_metrics(watching, caplog):
    watcher = watching(answers_per_alarm=100_000)
    shown(watcher, pl.concat([answers(150, seed=3)] * 2).sort("example_id"))
    assert caplog.text.count("neighbouring answers are alike") == 1
    assert "one_per and the path of what they share" in caplog.text
    assert (
        samples(generate_latest(Metrics(watcher).registry).decode())["tracecal_neighbours_alike"]
        == 1
    )


def test_a_deleted_state_leaves_answers_as_they_are_and_is_told(watching, tmp_path, caplog):
    watcher = watching()
    store = watcher.open_database()
    watcher.open_database = lambda: store
    shown(watcher, answers(10, seed=3))
    (tmp_path / "s.db").unlink()
    assert shown(watcher, answers(10, seed=4)) == [KEPT] * 10
    assert "was deleted or replaced" in watcher.failure
    assert "the proxy does not watch" in caplog.text
    assert samples(generate_latest(Metrics(watcher).registry).decode())["tracecal_watching"] == 0


def test_a_state_that_cannot_be_used_is_refused_at_the_start(watching, tmp_path):
    (tmp_path / "s.db").write_text("something else")
    with pytest.raises(InputError, match="cannot be used as a state"):
        watching()


def test_the_proxy_watches_what_it_answers(watching, of_top_k):
    watcher = watching()
    with (
        Upstream().serving() as before,
        proxied(Scorer(of_top_k, READING, 0.5, watcher), before.url) as serving,
        httpx.Client(base_url=serving.url, timeout=60) as http,
    ):
        for stream in (False, True):
            asked = http.post(CHAT, json=ASK | {"stream": stream})
            assert asked.status_code == 200
        assert until(lambda: watcher.state.n_watched)
        told = samples(http.get("/metrics").text)
        assert told['tracecal_requests_total{status="200"}'] == 2
        assert told["tracecal_request_seconds_count"] == 2
    assert watcher.failure is None


def test_a_clock_that_goes_backwards_moves_nothing(watching, monkeypatch):
    """From a year ahead to now, a day back and to the beginning of time."""
    watcher, now = watching(), time.time()
    store = watcher.open_database()
    for place, clock in enumerate((now + 3e7, now, now - 86_400, 0.0, now)):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        values = (np.full(30, value) for value in (0.5, 3.0, 1.0))
        ids = [f"{place}n{n}" for n in range(30)]
        store.add_served(ids, Batch(*values), ids, [0] * 30)
        assert store.state.n_watched == 30 * (place + 1)
    rows = store.query("SELECT place FROM answers ORDER BY place")
    assert [place for (place,) in rows] == [*range(1, 151)]


HOSTILE = "<script>alert(1)</script>\u202e\"'&<svg onload=alert(2)>{{ 7 * 7 }}"


def test_no_text_of_a_server_becomes_part_of_the_metrics(of_top_k, tmp_path, watching):
    watcher = watching()
    whole = chat(text=HOSTILE) | {"id": HOSTILE, "model": HOSTILE}
    with (
        Upstream(whole).serving() as before,
        proxied(Scorer(of_top_k, READING, 0.5, watcher), before.url) as serving,
        httpx.Client(base_url=serving.url, timeout=60) as http,
    ):
        assert http.post(CHAT, json=ASK | {"user": HOSTILE}).status_code == 200
        assert until(lambda: watcher.state.n_watched)
        metrics = http.get("/metrics").text
    assert not any(text in metrics for text in ("script>", "onload", "7 * 7"))
    assert samples(metrics)["tracecal_watching"] == 1


def _write(name, path, settings):
    store = StateDatabase(path, "one", settings)
    for first in range(0, 200, 5):
        ids = [f"{name}{place}" for place in range(first, first + 5)]
        values = (np.full(5, value) for value in (0.5, 3.0, 1.0))
        ids = ["same", *ids[1:]]
        store.add_served(ids, Batch(*values), ids, [0] * 5)
        store.add_labels([(ids[1], True), ("same", False)])


@pytest.mark.slow
def test_writers_of_one_state_at_once_lose_and_repeat_nothing(tmp_path):
    path, settings, context = (
        tmp_path / "s.db",
        AlarmSettings(),
        multiprocessing.get_context("spawn"),
    )
    writers = [context.Process(target=_write, args=(name, path, settings)) for name in "abc"]
    for one in writers:
        one.start()
    for one in writers:
        one.join(120)
    assert [one.exitcode for one in writers] == [0, 0, 0]
    store = StateDatabase(path, "one", settings)
    rows = store.query("SELECT place, id FROM answers ORDER BY place")
    assert [place for place, _ in rows] == [*range(1, 601)]
    assert sum(name.split("@")[0] == "same" for _, name in rows) == 120
    assert {f"{one}{place}" for one in "abc" for place in range(200) if place % 5} < dict(
        (name, place) for place, name in rows
    ).keys()
    assert store.state.n_watched == 600
    counts = store.counts()
    assert counts["used"] + counts["waiting"] + counts["not kept"] == 121


def test_it_sees_the_values_that_the_same_answers_have_in_a_file(watching, of_top_k):
    watcher, frame = watching(), answers(40, seed=3)
    shown(watcher, frame)
    rows = watcher.open_database().query("SELECT probability, length FROM answers ORDER BY place")
    expected = batch_of_answers(frame, of_top_k, None)
    np.testing.assert_allclose(
        np.array(rows).T, [expected.probability, expected.length], rtol=1e-12
    )


def test_without_it_the_paths_are_the_servers(client):
    upstream = Upstream()
    with client(upstream) as http:
        http.get("/metrics")
    assert [path for path, *_ in upstream.asked] == ["/metrics"]


@pytest.mark.slow
def test_kills_under_traffic_leave_the_state_of_one_pass(tmp_path):
    kills.run(2, tmp_path)


PROMPT, WORDS = "Who was the tallest of all queens?", ["Nobody", " remembers"]


def answered(watcher, number):
    """So many answers through a proxy."""
    likely = [(word, [(word, -0.25), (" else", -2.0)]) for word in WORDS]
    whole = chat([token(word, top[0][1], top) for word, top in likely], "".join(WORDS), "length")
    with (
        Upstream(whole).serving() as before,
        proxied(Scorer(watcher.predictor, READING, 0.5, watcher), before.url) as serving,
        httpx.Client(base_url=serving.url, timeout=60) as http,
    ):
        for n in range(number):
            asked = [{"role": "user", "content": f"{PROMPT} {n}"}]
            http.post(CHAT, json={"model": "m", "messages": asked})
        assert until(lambda: watcher.state.n_watched == number)
    assert watcher.failure is None


def test_the_first_answer_to_a_question_is_watched(watching):
    watcher = watching()
    whole = chat([token("a", -0.25, [("a", -0.25), (" else", -2.0)])], "a", "length")
    with (
        Upstream(whole).serving() as before,
        proxied(Scorer(watcher.predictor, READING, 0.5, watcher), before.url) as serving,
        httpx.Client(base_url=serving.url, timeout=60) as http,
    ):
        for content in ("one", "two", "one", " two "):
            http.post(CHAT, json=ASK | {"messages": [{"role": "user", "content": content}]})
        assert until(lambda: watcher.state.n_answers == 4)
    assert watcher.state.n_watched == 2


def test_no_text_is_stored(watching, tmp_path):
    watcher = watching()
    answered(watcher, 3)
    files = [path.read_bytes() for path in tmp_path.glob("s.db*")]
    assert any(b"answers" in content for content in files)
    for text in (PROMPT, "tallest", *WORDS):
        assert not any(text.encode() in content for content in files)
    with pytest.raises(InputError, match="cannot be read"):
        read_file(tmp_path / "s.db")


def test_answers_whose_server_repeats_their_ids_are_each_watched(of_top_k, watching, caplog):
    """Of three values under one id, and one of them again, each is an answer of its own."""
    watcher, words, sent = watching(), ["a", "b", "c", "b"], []
    requests = [
        ASK | {"messages": [{"role": "user", "content": str(place)}]} for place in range(len(words))
    ]

    class Repeating(Upstream):
        async def _answered(self, request, content):
            place = len(self.asked) - 1
            value = -0.1 - "abc".index(words[place])
            top = [token(words[place], value, [(words[place], value), (" else", -4.0)])]
            sent.append(chat(top, words[place], "length") | {"id": "chatcmpl-0"})
            return web.json_response(sent[-1])

    with (
        Repeating().serving() as before,
        proxied(Scorer(of_top_k, READING, 0.5, watcher), before.url) as serving,
        httpx.Client(base_url=serving.url, timeout=60) as http,
    ):
        for request in requests:
            given = http.post(CHAT, json=request).json()
            assert given["id"] == "chatcmpl-0"
        assert until(lambda: watcher.state.n_watched == 4)
        told = samples(http.get("/metrics").text)
    assert told["tracecal_repeated_ids_total"] == 3
    assert caplog.text.count("the server repeats ids of answers") == 1
    names = ["chatcmpl-0", *(f"chatcmpl-0@{place}" for place in (2, 3, 4))]
    rows = [
        {"id": name, "request": request, "response": response}
        for name, request, response in zip(names, requests, sent, strict=True)
    ]
    read = answers_in(rows, READING).frame
    rows = watcher.open_database().query("SELECT id, probability FROM answers ORDER BY place")
    assert [name for name, _ in rows] == names
    expected = batch_of_answers(read, of_top_k, None).probability
    np.testing.assert_allclose([probability for _, probability in rows], expected, rtol=1e-6)


def test_a_hostile_id_cannot_take_anothers_name(watching):
    store = watching().open_database()

    def given(*ids):
        values = (np.full(len(ids), value) for value in (0.5, 3.0, 1.0))
        choices = [0] * len(ids)
        repeated = store.add_served(ids, Batch(*values), ids, choices)
        rows = store.query("SELECT id FROM answers ORDER BY place")
        return repeated, [name for (name,) in rows][-len(ids) :]

    assert given("a@2", "a", "a", "a") == (2, ["a@2", "a", "a@3", "a@4"])
    assert given("a@6", "a") == (1, ["a@6", "a@6@6"])
