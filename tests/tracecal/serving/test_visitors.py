"""Who may ask the proxy: a page of another site may make a browser send what it likes."""

import json

import httpx2 as httpx
import pytest
from aiohttp import web

from support.running import ASK, CHAT, OF_JSON, READING, asked_by_hand, by_hand, proxied
from support.upstream import Background, Upstream
from tracecal.cli.main import main
from tracecal.serving.proxy_settings import ProxySettings
from tracecal.serving.scorer import Scorer
from tracecal.serving.watcher import Watcher

PAGE = """<!doctype html><title>a page</title>
<iframe name=reply></iframe>
<form method=post enctype=text/plain target=reply><input name='{"model": "m", "x' value='": 1}'></form>"""
# What a page may do unasked, and with the server's leave; the text of an answer, or what failed.
ASKING = """fetch(%r, {method: "POST", body: %r, ...%s})
.then(found => found.text()).catch(error => "failed: " + error)"""


@pytest.fixture
def watched(of_top_k, tmp_path):
    """A proxy that watches, and its `upstream`."""

    def serving(**settings):
        given = {"upstream": "http://x", "watch": str(tmp_path / "s.db")}
        watcher = Watcher(of_top_k, 0.3, ProxySettings(**given))
        found = proxied(Scorer(of_top_k, READING, 0.3, watcher), behind.url, **settings)
        found.upstream = upstream
        return found

    upstream = Upstream()
    with upstream.serving() as behind:
        yield serving


def site():
    async def page(request):
        return web.Response(text=PAGE, content_type="text/html")

    application = web.Application()
    application.router.add_get("/", page)
    return Background(application)


def asking(url, more):
    return ASKING % (url, json.dumps(ASK), json.dumps(more))


def test_a_page_of_another_site_reaches_nobody(watched, browser):
    with watched() as proxy, site() as other:
        browser.visit(other.url)
        for more in ({}, {"mode": "no-cors"}, {"headers": OF_JSON}):
            told = browser.ask(asking(proxy.url + CHAT, more))
            assert told == "" if more.get("mode") else told.startswith("failed: ")
        form = f"document.forms[0].action = {proxy.url + CHAT!r}, document.forms[0].submit()"
        browser.ask(form)
        browser.wait_for("frames.reply.length === 0 && performance.now() > 500")
        for path in ("/metrics", "/v1/models"):
            told = browser.ask(
                f"fetch({proxy.url + path!r}).then(one => one.text()).catch(e => 'no')"
            )
            assert told == "no"
        assert not proxy.upstream.asked


def test_nor_does_a_site_whose_name_was_pointed_at_this_machine(watched, browser):
    with watched() as proxy:
        port = proxy.url.rpartition(":")[2]
        browser.visit(f"http://evil.example:{port}/metrics")
        assert "not known as 'evil.example:" in browser.ask("document.body.innerText")
        told = browser.ask(asking(CHAT, {"headers": OF_JSON}))
        assert "--allow-host" in told
        assert not proxy.upstream.asked
        browser.visit(f"{proxy.url}/metrics")
        assert "tracecal_watching" in browser.ask("document.body.innerText")


def test_a_setting_names_other_names_and_pages(watched, browser):
    with watched(allow_host=["Proxy.example"]) as proxy:
        port = proxy.url.rpartition(":")[2]
        browser.visit(f"http://proxy.example:{port}/metrics")
        assert "tracecal_watching" in browser.ask("document.body.innerText")
        told = browser.ask(asking(CHAT, {"headers": OF_JSON}))
        assert '"confidence"' in told
    with site() as other, watched(allow_origin=[other.url]) as proxy:
        asked = {"content": json.dumps(ASK), "headers": OF_JSON | {"origin": other.url}}
        assert '"confidence"' in httpx.post(proxy.url + CHAT, **asked).text


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings", "/metrics", "/v1/models"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "[::"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "file://"}, 403),
        ({"origin": "file://{host}"}, 403),
        ({"origin": "chrome-extension://{host}"}, 403),
        ({"origin": "http://localhost:1"}, 403),
    ],
)
def test_foreign_hosts_and_origins_are_refused_on_every_path(watched, path, headers, status):
    method = "GET" if path in ("/metrics", "/v1/models") else "POST"
    with watched() as proxy:
        sent = {"content": json.dumps(ASK)} if method == "POST" else {}
        host = proxy.url.removeprefix("http://")
        headers = {name: value.format(host=host) for name, value in headers.items()}
        found = httpx.request(method, proxy.url + path, headers=OF_JSON | headers, **sent)
        assert found.status_code == status
        assert not proxy.upstream.asked


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:9", "[::1]:9", "x.localhost"]
)
def test_this_machines_names_are_its_own(watched, host):
    with watched() as proxy:
        assert httpx.get(f"{proxy.url}/v1/models", headers={"host": host}).status_code == 200
        page = {"host": host, "origin": f"http://{host.lower()}"}
        assert httpx.get(f"{proxy.url}/v1/models", headers=page).status_code == 200


def test_of_two_hosts_none_is_believed(watched):
    with (
        watched() as proxy,
        by_hand(proxy.url, asked_by_hand("/v1/models", "Host: evil.example")) as sent,
    ):
        assert b" 400 " in sent.recv(100)


@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/x-www-form-urlencoded", "text/plain; application/json"],
)
def test_bodies_are_json(watched, kind):
    headers = {} if kind is None else {"content-type": kind}
    with watched() as proxy:
        for path in (CHAT, "/v1/embeddings"):
            found = httpx.post(proxy.url + path, content=json.dumps(ASK), headers=headers)
            assert found.status_code == 415
            assert "Content-Type: application/json" in found.json()["error"]["message"]
        assert not proxy.upstream.asked
        files = httpx.post(f"{proxy.url}/v1/audio/transcriptions", files={"file": b"x"})
        assert files.status_code == 404  # the server has none
        charset = {"content-type": "application/json; charset=utf-8"}
        assert (
            httpx.post(proxy.url + CHAT, content=json.dumps(ASK), headers=charset).status_code
            == 200
        )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--allow-host", "http://proxy"], "'http://proxy' is not a name alone"),
        (["--allow-host", "proxy:8400"], "'proxy:8400' is not a name alone"),
        (["--allow-origin", "chat.example.org"], "is not an origin such as"),
        (["--allow-origin", "https://a/b"], "is not an origin such as"),
    ],
)
def test_settings_that_name_nobody_are_refused(calibrator_file, caplog, options, reason):
    start = ["serve", "--calibrator", str(calibrator_file), "--port", "0", "--upstream", "http://s"]
    assert main([*start, *options]) == 1
    assert reason in caplog.text


def test_a_request_without_a_host_is_refused_without_a_look_for_one(watched, monkeypatch):
    """The library would ask the network for this machine's name, and let all others wait."""
    monkeypatch.setattr("socket.getfqdn", lambda: pytest.fail("asked"))
    content = b"GET /v1/models HTTP/1.0\r\n\r\n"
    with watched() as serving, by_hand(serving.url, content) as sent:
        assert sent.recv(100).startswith(b"HTTP/1.0 403")
