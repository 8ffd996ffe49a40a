"""Splits of the hub's datasets become Parquet files that tasks are read from."""

import json

import polars as pl
import pyarrow.parquet as pq
import pytest

from support.client import Client
from support.hub_content import dataset_card, lines, parquet
from trace_workflow.config.row_files import read_rows

CONVERTED = "refs/convert/parquet"
ROWS = [
    {"id": f"r{n}", "q": f"Question {n}?\u2028", "a": {"value": "x", "aliases": ["x", "y"]}}
    for n in range(5)
]


def jsonl(rows: list[dict]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


@pytest.fixture
def hub(hub):
    card = dataset_card(
        {"plain": {"train": "plain/a.jsonl", "test": "plain/b.jsonl"}, "other": {"test": "o.csv"}}
    )
    hub.add(
        "dataset",
        "tiny/rows",
        {
            "README.md": card,
            "plain/a.jsonl": jsonl(ROWS),
            "plain/b.jsonl": jsonl(ROWS[:2]),
            "o.csv": b"id,q\n007,a\n",
        },
    )
    hub.add(
        "dataset",
        "tiny/bare",
        {
            "data/train-00000-of-00001.parquet": parquet(ROWS),
            "data/test-00000-of-00001.parquet": parquet(ROWS[:3]),
        },
    )
    return hub


def test_rows_are_those_of_the_split_at_the_commit(hub, client, tmp_path):
    commit = hub.repositories["dataset", "tiny/rows"].refs["main"]
    paths = [tmp_path / f"work/{name}.parquet" for name in ("plain", "bare")]
    results = client.stage(
        ["rows", "tiny/rows", "plain", commit, "train", str(paths[0])],
        ["rows", "tiny/bare", None, "main", "test", str(paths[1])],
    )
    assert [status for status, _ in results] == ["ok", "ok"]
    assert results[0][1] == commit
    assert read_rows(paths[0]) == ROWS
    assert read_rows(paths[1]) == ROWS[:3]
    assert pq.read_schema(paths[0]).metadata[b"revision"] == commit.encode()
    names = {path.name for path in (tmp_path / "work").iterdir()}
    assert names == {
        "bare.parquet",
        ".bare.parquet.sha256",
        "plain.parquet",
        ".plain.parquet.sha256",
    }


def test_the_hubs_parquet_conversion_is_read_by_folder(hub, client, tmp_path):
    """As of facebook/mlqa: a loading script on main, its rows on refs/convert/parquet."""
    hub.add("dataset", "tiny/mlqa", {"mlqa.py": b"raise SystemExit('code of the hub was run')"})
    repository = hub.repositories["dataset", "tiny/mlqa"]
    converted = "c" * 40
    repository.commits[converted] = {
        f"mlqa.{language}.{language}/{split}/0000.parquet": parquet([{"l": language, "s": split}])
        for language in ("en", "de")
        for split in ("test", "validation")
    }
    repository.refs[CONVERTED] = converted
    path = tmp_path / "r.parquet"
    call = ["rows", "tiny/mlqa", "mlqa.de.de", CONVERTED, "validation", str(path)]
    assert client.stage(call) == [["ok", converted]]
    assert read_rows(path) == [{"l": "de", "s": "validation"}]
    # Only the one file that is needed travels.
    assert sum("/cdn/" in one for one in hub.asked if one.startswith("GET")) == 1
    [[_, script], [_, config], [_, split], [_, pinned]] = client.stage(
        ["rows", "tiny/mlqa", "mlqa.de.de", "main", "test", str(path)],
        ["rows", "tiny/mlqa", "mlqa.de.fr", CONVERTED, "test", str(path)],
        ["rows", "tiny/mlqa", "mlqa.de.de", CONVERTED, "train", str(path)],
        ["rows", "tiny/mlqa", "mlqa.en.en", converted, "test", str(path)],
    )
    assert "loading script" in script
    assert CONVERTED in script
    assert "no configuration 'mlqa.de.fr'" in config
    assert "mlqa.de.de, mlqa.en.en" in config
    assert "no split 'train'; it has test, validation" in split
    assert pinned == converted


def test_what_is_wrong_is_said_in_a_sentence(hub, client, tmp_path):
    hub.add("dataset", "tiny/gated", {"README.md": b"", "train.jsonl": jsonl(ROWS)}, gated=True)
    hub.add("dataset", "tiny/broken", {"train.jsonl": b'{"a": 1}\n{"a": \n'})
    hub.add("dataset", "tiny/none", {"README.md": b"# nothing"})
    cases = {
        ("tiny/rwos", None, "main", "test"): ["no dataset tiny/rwos", "correct its name"],
        ("tiny/rows", "plain", "v9", "test"): ["no revision 'v9'"],
        ("tiny/rows", "plian", "main", "test"): ["no configuration 'plian'", "other, plain"],
        ("tiny/rows", None, "main", "test"): ["no configuration 'default'", "other, plain"],
        ("tiny/rows", "plain", "main", "dev"): ["no split 'dev'", "test, train"],
        ("tiny/bare", None, "main", "dev"): ["no split 'dev'", "test, train"],
        ("tiny/gated", None, "main", "train"): [
            "is gated",
            "https://huggingface.co/datasets/tiny/gated",
            "HF_TOKEN",
        ],
        ("tiny/broken", None, "main", "train"): ["no readable split 'train'"],
        ("tiny/none", None, "main", "train"): ["no readable split 'train'"],
    }
    target = tmp_path / "r.parquet"
    results = client.stage(*(["rows", *case, str(target)] for case in cases))
    for (status, sentence), parts in zip(results, cases.values(), strict=True):
        assert status == "error"
        assert "\n" not in sentence
        assert all(part in sentence for part in parts), sentence
    assert not target.exists()


def test_a_readme_names_configurations_that_folders_do_not(hub, client, tmp_path):
    card = dataset_card({"mine": {"test": "x/y/0000.parquet"}})
    hub.add("dataset", "tiny/own", {"README.md": card, "x/y/0000.parquet": parquet(ROWS)})
    path = tmp_path / "r.parquet"
    assert client.stage(["rows", "tiny/own", "mine", "main", "test", str(path)])[0][0] == "ok"
    assert read_rows(path) == ROWS


def test_another_revision_is_never_served_from_a_cache(hub, client, tmp_path):
    path = tmp_path / "r.parquet"
    call = ["rows", "tiny/bare", None, "main", "test", str(path)]
    assert client.stage(call)[0][0] == "ok"
    path.unlink()
    hub.faults = {"tiny/bare": [503] * 99}
    [[status, sentence]] = client.stage(call)
    assert (status, path.exists()) == ("error", False)
    assert "status 503" in sentence


def test_faults_on_the_way_are_survived(hub, client, tmp_path):
    hub.faults = {"/revision/": [503], "/resolve/": [503, 500], "/cdn/": ["cut", 502]}
    path = tmp_path / "r.parquet"
    assert client.stage(["rows", "tiny/bare", None, "main", "train", str(path)])[0][0] == "ok"
    assert read_rows(path) == ROWS


def test_without_a_network_the_way_out_is_named(tmp_path):
    client = Client("http://127.0.0.1:9", tmp_path / "hf")
    [[_, sentence]] = client.stage(["rows", "tiny/rows", None, "main", "test", str(tmp_path / "r")])
    assert "cannot be reached" in sentence


def test_real_rows_come_through_unchanged(hub, client, tmp_path, shared_data):
    truthful = lines(shared_data / "truthfulqa/generation_817.jsonl")
    trivia = lines(shared_data / "triviaqa/validation_3000_nocontext.jsonl")
    card = dataset_card({"generation": {"validation": "generation/v.parquet"}})
    hub.add(
        "dataset", "t/truthful_qa", {"README.md": card, "generation/v.parquet": parquet(truthful)}
    )
    card = dataset_card({"rc.nocontext": {"validation": "rc.nocontext/validation-*"}})
    hub.add(
        "dataset",
        "t/trivia_qa",
        {"README.md": card, "rc.nocontext/validation-00000-of-00001.parquet": parquet(trivia)},
    )
    paths = [tmp_path / "truthful.parquet", tmp_path / "trivia.parquet"]
    results = client.stage(
        ["rows", "t/truthful_qa", "generation", "main", "validation", str(paths[0])],
        ["rows", "t/trivia_qa", "rc.nocontext", "main", "validation", str(paths[1])],
    )
    assert [status for status, _ in results] == ["ok", "ok"]
    assert read_rows(paths[0]) == truthful
    assert read_rows(paths[1]) == pl.DataFrame(trivia).to_dicts()
