"""Models of the hub become folders of links, or one sentence says why not."""

import json

import pytest

from support.client import Client

COMMITS = "https://huggingface.co/{}/commits/main"


def test_a_model_is_staged_at_its_commit_without_code_pickle_or_second_copies(
    hub, client, tmp_path, model_files
):
    commit = hub.repositories["model", "tiny/model"].refs["main"]
    target = tmp_path / "models/tiny"
    assert client.stage(["model", "tiny/model", commit, str(target)]) == [["ok", commit]]
    names = {path.name for path in target.iterdir()}
    unwanted = {"README.md", "pytorch_model.bin", "modeling_tiny.py", "consolidated.safetensors"}
    assert names == {name for name in model_files if "/" not in name} - unwanted
    assert all((target / name).read_bytes() == model_files[name] for name in names)
    assert all((target / name).is_symlink() for name in names)
    fetched = {path.name for path in (tmp_path / "hf").rglob("*") if path.is_symlink()}
    assert not fetched & unwanted


def test_a_moving_ref_is_resolved_and_warned_about(hub, client, tmp_path):
    commit = hub.repositories["model", "tiny/model"].refs["main"]
    result = client.stage(["model", "tiny/model", "main", str(tmp_path / "m")])
    assert result == [["ok", commit]]
    assert f"warning: revision 'main' of tiny/model is {commit} now" in client.printed


def test_faults_on_the_way_are_survived(hub, client, tmp_path, model_files):
    hub.faults = {
        "/revision/": [503],
        "/tree/": [502],
        "/resolve/": [503, 500],
        "/cdn/": ["cut", 503, "cut"],
    }
    [[status, _]] = client.stage(["model", "tiny/model", "main", str(tmp_path / "m")])
    assert status == "ok"
    assert not any(hub.faults.values())
    for path in (tmp_path / "m").iterdir():
        assert path.read_bytes() == model_files[path.name]


def test_what_is_wrong_is_said_in_a_sentence(hub, client, tmp_path, model_files):
    without = {name: data for name, data in model_files.items() if "safetensors" not in name}
    hub.add("model", "tiny/pickled", without)
    hub.add("model", "tiny/empty", {"README.md": b"nothing"})
    hub.add("model", "tiny/ill", model_files)
    hub.faults = {"tiny/ill": [503] * 99}
    cases = {
        ("tiny/modle", "main"): ["no model tiny/modle at http://127", "or it is private"],
        ("tiny/model", "v9"): ["no revision 'v9'", COMMITS.format("tiny/model")],
        ("tiny/model", "0" * 40): [f"no revision '{'0' * 40}'"],
        ("tiny/pickled", "main"): ["no model.safetensors", "pytorch_model.bin", "'path'"],
        ("tiny/empty", "main"): ["no config.json"],
        ("tiny/ill", "main"): ["status 503", "try again later"],
    }
    calls = [["model", *case, str(tmp_path / "m")] for case in cases]
    results = client.stage(*calls)
    for (status, sentence), parts in zip(results, cases.values(), strict=True):
        assert status == "error"
        assert "\n" not in sentence
        assert all(part in sentence for part in parts), sentence
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_without_a_network_the_way_out_is_named(hub, tmp_path):
    for client in (
        Client("http://127.0.0.1:9", tmp_path / "hf"),
        Client(hub.url, tmp_path / "hf", HF_HUB_OFFLINE="1"),
    ):
        [[_, sentence]] = client.stage(["model", "tiny/model", "main", str(tmp_path / "m")])
        for part in ("cannot be reached", "`snakemake stage`", "HF_ENDPOINT", "'path'"):
            assert part in sentence
        assert "\n" not in sentence


def test_a_disk_that_is_too_small_is_told_before_the_download(hub, client, tmp_path, model_files):
    index = json.loads(model_files["model.safetensors.index.json"])
    shard = sorted(set(index["weight_map"].values()))[0]
    huge = bytes(1) * 10

    class Sized(bytes):
        def __len__(self) -> int:
            return 10**15

    hub.add("model", "tiny/huge", model_files | {shard: Sized(huge)})
    [[status, sentence]] = client.stage(["model", "tiny/huge", "main", str(tmp_path / "m")])
    assert status == "error"
    assert "needs 1000000.0 GB more" in sentence
    assert "HF_HOME" in sentence
    assert not any(shard in path or "/cdn/" in path for path in hub.asked)


@pytest.mark.slow
def test_a_gated_model_names_its_licence_and_the_token_leaks_nowhere(
    hub, client, tmp_path, model_files
):
    accepted, other = "hf_acceptedacceptedaccepted", "hf_strangerstrangerstranger"
    hub.add("model", "tiny/gated", model_files, gated=True, tokens=frozenset({accepted}))
    call = ["model", "tiny/gated", "main", str(tmp_path / "m")]
    stranger = Client(hub.url, tmp_path / "hf2", HF_TOKEN=other)
    # No header can hold this token, and the client's complaint quotes it.
    broken = Client(hub.url, tmp_path / "hf4", HF_TOKEN=f"{other}\x01{other}")
    for one in (client, stranger):
        [[status, sentence]] = one.stage(call)
        assert status == "error"
        for part in (
            "is gated",
            "https://huggingface.co/tiny/gated",
            "HF_TOKEN",
            "`hf auth login`",
        ):
            assert part in sentence
    assert broken.stage(call)[0][0] == "error"
    bearer = Client(hub.url, tmp_path / "hf3", HF_TOKEN=accepted)
    assert bearer.stage(call)[0][0] == "ok"
    for one, token in ((stranger, other), (bearer, accepted), (broken, other)):
        assert token not in one.printed
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert accepted.encode() not in data
            assert other.encode() not in data
