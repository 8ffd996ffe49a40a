"""A split of a hub dataset, staged as a Parquet file."""

import re
import tempfile
from pathlib import Path

import datasets
import pyarrow.parquet as pq
from datasets import load_dataset, load_dataset_builder
from datasets.exceptions import DatasetsError
from huggingface_hub.errors import LocalEntryNotFoundError
from huggingface_hub.utils import disable_progress_bars

from trace_workflow.models.staging.hub import Contents, HubSource, gated, read_contents, request
from tracecal.errors import InputError
from tracecal.io.checksums import write_sum
from tracecal.io.log import LOGGER
from tracecal.io.regular_files import atomic_write

BATCH = 10_000  # rows held in memory at once


def stage_rows(
    repository: str, config: str | None, revision: str, split: str, target: str | Path
) -> str:
    """Fetch one split of a dataset and write its rows to `target`; return the dataset's commit.

    Raises `InputError` where the hub fails, or has no such configuration or split.
    """
    disable_progress_bars()
    datasets.disable_progress_bars()
    contents = read_contents(HubSource("dataset", repository, revision))
    commit = contents.source.revision
    # A cache of its own: from a shared one, `datasets` serves other revisions when the hub fails.
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=Path(target).parent, prefix=".") as cache:
        rows = _load(contents, config, split, cache)
        _write(rows, target, {"hub": repository, "revision": commit})
        name = f"{repository} {config or ''} {split}"
        LOGGER.info("staged %d row(s) of %s at commit %s", rows.num_rows, name, commit)
    return commit


def converted_files(contents: Contents) -> dict[str, dict[str, list[str]]]:
    """Configuration -> split -> files, as the hub converts them: <config>/<split>/0000.parquet.

    Empty where there is a README: conversions have none, and it may declare other configurations.
    """
    files: dict[str, dict[str, list[str]]] = {}
    for name in sorted(contents.sizes) if "README.md" not in contents.sizes else ():
        if match := re.fullmatch(r"([^/]+)/([^/]+)/\d{4}\.parquet", name):
            files.setdefault(match[1], {}).setdefault(match[2], []).append(name)
    return files


def _load(contents: Contents, config: str | None, split: str, cache: str) -> datasets.Dataset:
    source = contents.source
    settings = {"revision": source.revision, "cache_dir": cache}
    if converted := converted_files(contents):
        files = converted.get(config or "default", {})
        if split not in files:
            raise InputError(_absent(source, config, sorted(converted), split, sorted(files)))
        settings |= {"data_files": {split: files[split]}}
    else:
        settings |= {"name": config}

    def load() -> datasets.Dataset:
        try:
            return load_dataset(source.repository, split=split, **settings)
        except LocalEntryNotFoundError:
            raise  # the hub failed; `request` handles it
        except (ValueError, RuntimeError, DatasetsError, FileNotFoundError) as error:
            raise InputError(_sentence(error, contents, config, split, cache)) from None

    return request(source, load)


def _sentence(
    error: Exception, contents: Contents, config: str | None, split: str, cache: str
) -> str:
    """What is wrong with the request, and what to write instead."""
    source = contents.source
    if "is a gated dataset" in str(error):
        return gated(source)
    if f"{source.repository.split('/')[1]}.py" in contents.sizes:
        return (
            f"dataset {source.repository} is a loading script, which is never run; set 'revision' "
            "to refs/convert/parquet, the hub's own conversion of it, if the hub has made one."
        )
    try:
        builder = load_dataset_builder(
            source.repository, config, revision=source.revision, cache_dir=cache
        )
    except ValueError as again:
        # "BuilderConfig 'x' not found. Available: ['a', 'b']", or "Config name is missing."
        names = str(again).rpartition("vailable")[2].split("'")[1::2]
        return _absent(source, config, names, split, [])
    except (DatasetsError, RuntimeError, FileNotFoundError):
        splits = []
    else:
        splits = sorted(map(str, builder.config.data_files or {}))
    if split not in splits and splits:
        return _absent(source, config, [config or "default"], split, splits)
    return (
        f"dataset {source.repository} has no readable split {split!r} in its configuration "
        f"{config or 'default'!r} at {source.revision} ({type(error).__name__})."
    )


def _absent(
    source: HubSource, config: str | None, configs: list[str], split: str, splits: list[str]
) -> str:
    """Names the existing `configs` where `config` is none of them, else the existing `splits`."""
    name = config or "default"
    if name in configs:
        return (
            f"configuration {name!r} of dataset {source.repository} has no split {split!r}; "
            f"it has {', '.join(splits)}."
        )
    return (
        f"dataset {source.repository} has no configuration {name!r} ('config'); it has "
        f"{', '.join(sorted(configs))}."
    )


def _write(rows: datasets.Dataset, target: str | Path, metadata: dict[str, str]) -> None:
    schema = rows.features.arrow_schema.with_metadata(metadata)
    with atomic_write(target) as part, pq.ParquetWriter(part, schema) as writer:
        for table in rows.with_format("arrow").iter(batch_size=BATCH):
            writer.write_table(table.cast(schema))
    write_sum(target)
