"""Version, changelog and citation name the same release, and the site is built as it is described."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import tracecal
from support.checkout import repository_files
from support.chromium import started

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
MKDOCS = ROOT / ".venv-docs/bin/mkdocs"


def test_version_and_licence_agree():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\S+) \((not released|\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    version, date = releases[0]
    assert version == PROJECT["version"] == CITATION["version"]
    assert date == str(CITATION.get("date-released", "not released"))
    assert (".dev" in version) == (date == "not released")
    assert PROJECT["license"] == CITATION["license"] == "MIT"
    assert PROJECT["name"] in CITATION["title"]
    stability = (ROOT / "docs/reference/stability.md").read_text(encoding="utf-8")
    assert f"Version {'.'.join(version.split('.')[:2])} " in stability
    assert f"Version {version}" in (ROOT / "AGENTS.md").read_text(encoding="utf-8")


def test_the_catalogue_of_workflows_finds_what_its_generator_reads():
    """By snakemake-workflow-catalog's scripts/generate-catalog.py and source/build_wf_pages.py."""
    text = (ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8")
    usage = yaml.safe_load(text).pop("usage")
    assert usage.keys() == {"mandatory-flags", "software-stack-deployment", "report"}
    assert usage["report"] is True
    assert usage["mandatory-flags"].keys() == {"desc", "flags"}
    ways = usage["software-stack-deployment"]
    assert ways.keys() == {"conda", "apptainer", "apptainer+conda"}
    assert ways["conda"] is True and {type(way) for way in ways.values()} == {bool}
    assert (ROOT / "Snakefile").exists() and (ROOT / "config/README.md").exists()
    readme = (ROOT / "README.md").read_text(encoding="utf-8").lower()
    assert "snakemake" in readme and "workflow" in readme


def test_the_address_of_the_repository_is_missing_in_one_place():
    """Until it has one: whoever publishes it replaces this placeholder alone."""
    placeholder = "-".join(["ADDRESS", "OF", "THIS", "PAGE"])
    places = [
        name
        for name in repository_files()
        if placeholder.encode() in (ROOT / name).read_bytes() or name.endswith(placeholder)
    ]
    assert places == ["README.md"]
    assert (ROOT / "README.md").read_text(encoding="utf-8").count(placeholder) == 1


def test_the_site_needs_no_torch_and_agrees_with_the_lock():
    pins = {
        name: dict(re.findall(r"^([\w.-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE))
        for name, path in (
            (name, ROOT / f"envs/{name}.txt") for name in ("requirements", "requirements-docs")
        )
    }
    lock, docs = pins["requirements"], pins["requirements-docs"]
    assert "mkdocs" in docs and "torch" not in docs
    assert {name: docs[name] for name in docs.keys() & lock.keys()}.items() <= lock.items()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\n.venv-docs/installed: envs/requirements-docs.txt\n" in makefile


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not MKDOCS.exists():
        pytest.skip("no .venv-docs here: make docs")
    site = tmp_path_factory.mktemp("docs") / "site"
    command = [MKDOCS, "build", "--quiet", "--config-file", ROOT / "mkdocs.yml", "-d", site]
    subprocess.run(command, check=True)
    return site


@pytest.mark.pages
def test_the_site_is_searched_from_a_disk(site, tmp_path):
    with started(tmp_path / "profile") as browser:
        browser.open(site / "index.html", "?q=proxy")
        browser.wait_for('document.querySelectorAll(".md-search-result__link").length > 0')
        assert not [url for url in browser.requests if url.startswith("http")]


def test_the_site_describes_every_public_name(site):
    page = (site / "guides/python.html").read_text(encoding="utf-8")
    missing = [name for name in tracecal.MODULES if f'id="tracecal.{name}"' not in page]
    assert missing == []
