"""A hub on loopback that speaks the Hugging Face hub's HTTP API, as its client libraries use it."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = (".safetensors", ".parquet")  # kept in LFS: answered by a redirect to a content address


@dataclass
class Repository:
    """Files by commit, commits by ref; `gated` to all but the bearers of `tokens`."""

    commits: dict[str, dict[str, bytes]]
    refs: dict[str, str]
    gated: bool = False
    tokens: frozenset[str] = frozenset()

    def commit(self, revision: str) -> str | None:
        commit = self.refs.get(revision, revision)
        return commit if commit in self.commits else None


@dataclass
class Hub:
    """What the server serves, the faults it is to commit, and what it was asked."""

    repositories: dict[tuple[str, str], Repository] = field(default_factory=dict)
    # Substring of a path -> statuses to answer with, one a request; "cut" breaks off half-way.
    faults: dict[str, list[int | str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def add(self, kind: str, name: str, files: dict[str, bytes], **settings) -> str:
        """Add a repository of one commit, on `main`; return the commit."""
        listing = sorted((path, hashlib.sha1(data).hexdigest()) for path, data in files.items())
        commit = hashlib.sha1(f"{kind}{name}{listing}".encode()).hexdigest()
        refs = {"main": commit} | {ref: commit for ref in settings.pop("refs", ())}
        self.repositories[kind, name] = Repository({commit: files}, refs, **settings)
        return commit

    def fault(self, path: str, method: str) -> int | str | None:
        for part, faults in self.faults.items():
            if part in path and faults and not (faults[0] == "cut" and method == "HEAD"):
                return faults.pop(0)
        return None


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve `hub` on a free port of 127.0.0.1; its address is `hub.url`."""

    class Handler(_Handler):
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Hub

    def log_message(self, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._route()

    def do_GET(self) -> None:
        self._route()

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._route()

    def _route(self) -> None:
        path = urlsplit(self.path).path
        self.served.asked.append(f"{self.command} {path}")
        fault = self.served.fault(path, self.command)
        if isinstance(fault, int):
            return self._error(fault, None, "the hub has a bad day")
        self.cut = fault == "cut"
        if match := re.fullmatch(r"/cdn/(.+)", path):
            return self._cdn(match[1])
        api = re.fullmatch(r"/api/(model|dataset)s/([^/]+/[^/]+)(?:/(\w[\w-]*)/(.+))?", path)
        file = re.fullmatch(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if api:
            kind, name, verb, rest = api.groups()
            revision, _, below = (rest or "main").partition("/")
            return self._api(kind, name, verb or "revision", unquote(revision), unquote(below))
        if file:
            kind = "dataset" if file[1] else "model"
            return self._resolve(kind, file[2], unquote(file[3]), unquote(file[4]))
        return self._error(404, None, "no such route")

    def _api(self, kind: str, name: str, verb: str, revision: str, below: str) -> None:
        found = self._find(kind, name, revision)
        if found is None:
            return
        repository, commit = found
        files = repository.commits[commit]
        if verb == "revision":
            siblings = [
                {"rfilename": path, "size": len(data), "blobId": _sha(data)}
                for path, data in sorted(files.items())
            ]
            gated = "manual" if repository.gated else False
            value = {"id": name, "sha": commit, "gated": gated, "private": False}
            self._json(value | {"siblings": siblings, "tags": [], "downloads": 0, "likes": 0})
        elif verb == "tree":
            recursive = parse_qs(urlsplit(self.path).query).get("recursive", [""])[0]
            entries = _tree(files, below, recursive.lower() in ("true", "1"))
            if below and not entries:
                self._error(404, "EntryNotFound", f"no folder {below}")
            else:
                self._json(entries)
        elif verb == "paths-info":
            asked = parse_qs(self.body.decode())["paths"]
            self._json([entry for path in asked for entry in _paths_info(files, path)])
        else:
            self._error(404, None, f"no verb {verb}")

    def _resolve(self, kind: str, name: str, revision: str, path: str) -> None:
        found = self._find(kind, name, revision)
        if found is None:
            return
        repository, commit = found
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if repository.gated and bearer not in repository.tokens:
            status = 403 if bearer else 401
            self._error(status, "GatedRepo", f"Access to {kind} {name} is restricted.")
        elif path not in repository.commits[commit]:
            self._error(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        else:
            data = repository.commits[commit][path]
            headers = {"X-Repo-Commit": commit, "ETag": f'"{_sha(data)}"'}
            if path.endswith(LARGE):
                digest = hashlib.sha256(data).hexdigest()
                headers |= {"X-Linked-Size": str(len(data)), "X-Linked-ETag": f'"{digest}"'}
                # Another host, as on the real hub: clients follow redirects within one for a HEAD.
                headers["Location"] = f"http://localhost:{self.server.server_port}/cdn/{digest}"
                self._send(302, b"", headers)
            else:
                self._data(data, headers)

    def _cdn(self, digest: str) -> None:
        assert "Authorization" not in self.headers, "a token was sent to another host"
        for repository in self.served.repositories.values():
            for files in repository.commits.values():
                for data in files.values():
                    if hashlib.sha256(data).hexdigest() == digest:
                        return self._data(data, {"ETag": f'"{digest}"'})
        return self._error(404, None, "no such content")

    def _find(self, kind: str, name: str, revision: str) -> tuple[Repository, str] | None:
        repository = self.served.repositories.get((kind, name))
        if repository is None:
            # The hub says 401 to the anonymous: the repository may exist and be private.
            status = 404 if self.headers.get("Authorization") else 401
            self._error(status, "RepoNotFound", "Repository not found")
            return None
        commit = repository.commit(revision)
        if commit is None:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return repository, commit

    def _data(self, data: bytes, headers: dict[str, str]) -> None:
        """The content, or what a Range header asks of it."""
        headers["Accept-Ranges"] = "bytes"
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not asked:
            return self._send(200, data, headers)
        start, end = int(asked[1]), int(asked[2] or len(data) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
        return self._send(206, data[start : end + 1], headers)

    def _json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(
        self, status: int, code: str | None, message: str, headers: dict[str, str] | None = None
    ) -> None:
        headers = {"X-Error-Message": message} | (headers or {})
        if code:
            headers["X-Error-Code"] = code
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if getattr(self, "cut", False) and status in (200, 206):
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(body)


def _sha(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _entry(path: str, data: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(data), "oid": _sha(data)}
    if path.endswith(LARGE):
        digest = hashlib.sha256(data).hexdigest()
        entry["lfs"] = {"oid": digest, "size": len(data), "pointerSize": 134}
    return entry


def _folders(files: dict[str, bytes]) -> set[str]:
    parts = [path.split("/")[:-1] for path in files]
    return {"/".join(part[: end + 1]) for part in parts for end in range(len(part))}


def _folder(path: str) -> dict[str, object]:
    return {"type": "directory", "path": path, "size": 0, "oid": _sha(path.encode())}


def _tree(files: dict[str, bytes], below: str, recursive: bool) -> list[dict[str, object]]:
    prefix = f"{below}/" if below else ""
    entries = [_folder(path) for path in sorted(_folders(files))]
    entries += [_entry(path, data) for path, data in sorted(files.items())]
    inside = [entry for entry in entries if str(entry["path"]).startswith(prefix)]
    return [one for one in inside if recursive or "/" not in str(one["path"])[len(prefix) :]]


def _paths_info(files: dict[str, bytes], path: str) -> list[dict[str, object]]:
    if path in files:
        return [_entry(path, files[path])]
    return [_folder(path)] if path in _folders(files) else []
