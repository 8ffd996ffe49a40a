"""The finished run that tests share: made once, and whole whatever happens beside it."""

import shutil
import subprocess
import threading
import time
from types import SimpleNamespace

import pytest

from support import checkout


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A small repository, and what a call of the tests keeps; a run of it writes one file."""
    root, kept = tmp_path / "repository", tmp_path / "kept"
    kept.mkdir()
    (root / "rules").mkdir(parents=True)
    for name in ("Snakefile", "README.md", "rules/one.smk"):
        (root / name).write_text("before")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    runs = []

    def run(self):
        runs.append((self.root / "Snakefile").read_text())
        (self.root / "result").write_text(runs[-1])

    monkeypatch.setattr(checkout, "REPOSITORY", root)
    monkeypatch.setattr(checkout.Checkout, "snakemake", run)
    config = SimpleNamespace(cache=SimpleNamespace(mkdir=lambda name: kept))
    copies = iter(range(9))
    return SimpleNamespace(
        root=root,
        runs=runs,
        copied=lambda: checkout.copied_smoke_run(config, tmp_path / f"{next(copies)}").root,
    )


def test_a_run_is_made_anew_where_what_it_is_made_from_changed(repository):
    repository.copied()
    (repository.root / "log.txt").write_text("a line of a log that is written there")
    (repository.root / "README.md").write_text("after")
    copy = repository.copied()
    assert repository.runs == ["before"]
    assert (copy / "README.md").read_text() == "after", "what no run depends on is the newest"
    (repository.root / "Snakefile").write_text("after")
    assert (repository.copied() / "result").read_text() == "after"
    assert repository.runs == ["before", "after"]


def test_nobody_deletes_what_another_process_copies(repository, monkeypatch):
    """As two calls of the tests do in one checkout that was edited in between."""
    copytree, begun = shutil.copytree, threading.Event()

    def slowly(*arguments, **options):
        begun.set()
        time.sleep(0.3)
        return copytree(*arguments, **options)

    monkeypatch.setattr(shutil, "copytree", slowly)
    copies = []
    first = threading.Thread(target=lambda: copies.append(repository.copied()))
    first.start()
    begun.wait()
    (repository.root / "Snakefile").write_text("after")
    second = repository.copied()
    first.join()
    assert [(copy / "result").read_text() for copy in (*copies, second)] == ["before", "after"]
    assert [(copy / "Snakefile").read_text() for copy in (*copies, second)] == ["before", "after"]
