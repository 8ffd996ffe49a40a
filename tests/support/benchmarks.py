"""The four benchmarks as the hub holds them, made of real rows: files by path."""

from pathlib import Path

from support.hub_content import dataset_card, lines, parquet
from trace_workflow.config.tasks import Rows

LANGUAGES = ["ar", "de", "en", "es", "hi", "vi", "zh"]


def svamp(data: Path) -> dict[str, bytes]:
    return {
        f"data/{split}-00000-of-00001.parquet": parquet(lines(data / f"svamp/{split}.jsonl"))
        for split in ("train", "test")
    }


def triviaqa(data: Path) -> dict[str, bytes]:
    rows = lines(data / "triviaqa/validation_3000_nocontext.jsonl")
    files = {"validation": rows[:2500], "train": rows[2400:]}
    paths = {split: f"rc.nocontext/{split}-00000-of-00001.parquet" for split in files}
    card = dataset_card({"rc.nocontext": paths})
    return {"README.md": card} | {paths[split]: parquet(files[split]) for split in files}


def truthfulqa(data: Path) -> dict[str, bytes]:
    path = "generation/validation-00000-of-00001.parquet"
    rows = lines(data / "truthfulqa/generation_817.jsonl")
    return {"README.md": dataset_card({"generation": {"validation": path}}), path: parquet(rows)}


def mlqa(data: Path) -> dict[str, bytes]:
    files = {}
    for language in LANGUAGES:
        rows = lines(data / f"xquad/xquad.{language}/validation.jsonl")
        folder = f"mlqa.{language}.{language}"
        files[f"{folder}/test/0000.parquet"] = parquet(rows[:200])
        files[f"{folder}/validation/0000.parquet"] = parquet(rows[190:])
    return files


BENCHMARKS = {"mlqa": mlqa, "svamp": svamp, "triviaqa": triviaqa, "truthfulqa": truthfulqa}


def serve(hub, name: str, rows: Rows, data: Path) -> None:
    """Serve a benchmark at the very revision that its task file names; `main` is another one."""
    source = rows.source
    hub.add("dataset", source.hub, {"README.md": b"the main branch"})
    repository = hub.repositories["dataset", source.hub]
    repository.refs[source.revision] = commit = f"{name:0<40.40}".replace("q", "a")
    repository.commits[commit] = BENCHMARKS[name](data)
