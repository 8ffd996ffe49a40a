"""A frozen copy of a run's configuration files.

Every job reads the configuration, on a cluster long after the start of the run. All jobs read the
copy, so that an edit takes effect in the next run, not in half of this one.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from trace_workflow.config.tasks import task_file
from tracecal.errors import InputError
from tracecal.io.digests import hash_of
from tracecal.io.input_files import read_yaml
from tracecal.io.regular_files import write_text

OPTIONS = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
OPTIONS.add_argument("--configfile", "--configfiles", nargs="+", default=[])
OPTIONS.add_argument("--config", "-C", nargs="*", default=[])
# The last file of a copy: settings of the command line, and where the copied task files are.
SETTINGS = "frozen_settings.yaml"


def config_sources(files: Sequence[str], arguments: Sequence[str]) -> str:
    """The name in messages of a configuration: its files, and settings in arguments of Snakemake.

    >>> config_sources(["config/mine.yaml"], ["--cores", "2", "--config", "run=2026"])
    'config/mine.yaml, --config run=2026'
    """
    settings = OPTIONS.parse_known_args(arguments)[0].config
    return ", ".join([*files, f"--config {' '.join(settings)}"] if settings else files) or "config"


def merged(files: Sequence[str], settings: Sequence[str] = ()) -> dict[str, Any]:
    """The configuration of `files`, as Snakemake merges them, and `settings` as YAML ("a=1").

    Raises `InputError` where a file is missing or holds no mapping in YAML: Snakemake would not say
    which file, or where in it.
    """
    value: dict[str, Any] = {}
    for path in files:
        content = read_yaml(path)
        if not isinstance(content, dict):
            raise InputError(f"{path} holds no settings; write keys and values, as run: mine")
        value = _updated(value, content)
    return _updated(value, _values(settings))


def _values(settings: Sequence[str]) -> dict[str, Any]:
    pairs = (setting.partition("=") for setting in settings)
    return {key: _setting(key, text) for key, _, text in pairs}


def _setting(key: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"--config {key}={text}: expected a value in YAML.") from error


def _updated(value: Any, update: Any) -> Any:
    """Merge mappings key by key; replace anything else."""
    if not isinstance(value, dict) or not isinstance(update, dict):
        return update
    return value | {key: _updated(value.get(key), new) for key, new in update.items()}


def freeze(
    files: Sequence[str],
    settings: Sequence[str],
    value: Mapping[str, Any],
    root: Path,
    folder: str | Path,
) -> list[Path]:
    """Copy the `files` and `settings` of the valid configuration `value`, and its task files.

    Returns the copies in the order in which Snakemake must read them. They lie in a folder below
    `folder` that is named by a hash of its content, so a copy never changes. `root` is the
    workflow's folder. Raises `InputError` where two files have the same name.
    """
    texts = {Path(file).name: Path(file).read_text(encoding="utf-8") for file in files}
    if len(texts) < len(files) or SETTINGS in texts:
        raise InputError(f"of {', '.join(files)} two have one name; rename one.")
    tasks = {
        f"tasks/{entry['slug']}.yaml": task_file(entry["slug"], entry.get("file"), root)
        for entry in value["tasks"]
    }
    texts |= {name: path.read_text(encoding="utf-8") for name, path in sorted(tasks.items())}
    frozen = Path(folder).resolve() / hash_of(json.dumps([texts, *settings]))
    entries = [
        {**entry, "file": str(frozen / f"tasks/{entry['slug']}.yaml")} for entry in value["tasks"]
    ]
    last = _values(settings) | {"tasks": entries}
    texts[SETTINGS] = yaml.safe_dump(last, sort_keys=True, allow_unicode=True)
    for name, text in texts.items():
        write_text(text, frozen / name)
    return [frozen / name for name in texts if name not in tasks]
