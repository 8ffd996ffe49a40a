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
from tracecal.io.files import write_text
from tracecal.io.input_files import read_yaml

OPTIONS = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
OPTIONS.add_argument("--configfile", "--configfiles", nargs="+", default=[])
OPTIONS.add_argument("--config", "-C", nargs="*", default=[])
# The copy's last file, which names the copies of the task files.
TASKS = "frozen_tasks.yaml"


def config_files(arguments: Sequence[str]) -> list[str]:
    """The configuration files that arguments of Snakemake name."""
    return OPTIONS.parse_known_args(arguments)[0].configfile


def config_sources(arguments: Sequence[str]) -> str:
    """The name in messages of the configuration that arguments of Snakemake give.

    >>> config_sources(["--configfile", "config/mine.yaml", "--config", "run=2026"])
    'config/mine.yaml, --config run=2026'
    """
    options = OPTIONS.parse_known_args(arguments)[0]
    settings = [f"--config {' '.join(options.config)}"] if options.config else []
    return ", ".join([*options.configfile, *settings]) or "config"


def merged(files: Sequence[str], settings: Sequence[str] = ()) -> dict[str, Any]:
    """The configuration of `files` and of `settings` ('key=value'), as Snakemake merges them.

    Raises `InputError` where a file is missing or holds no mapping in YAML: Snakemake would not say
    which file, or where in it.
    """
    value: dict[str, Any] = {}
    for path in files:
        content = read_yaml(path)
        if not isinstance(content, dict):
            raise InputError(f"{path} holds no settings; write keys and values, as run: mine")
        value = _updated(value, content)
    pairs = (setting.partition("=") for setting in settings)
    return _updated(value, {key: _setting(key, text) for key, _, text in pairs})


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
    files: Sequence[str], value: Mapping[str, Any], root: Path, folder: str | Path
) -> list[Path]:
    """Copy the `files` of the valid configuration `value`, and its task files.

    Returns the copies in the order in which Snakemake must read them. They lie in a folder below
    `folder` that is named by a hash of its content, so a copy never changes. `root` is the
    workflow's folder. Raises `InputError` where two files have the same name.
    """
    texts = {Path(file).name: Path(file).read_text(encoding="utf-8") for file in files}
    if len(texts) < len(files) or TASKS in texts:
        raise InputError(f"of {', '.join(files)} two have one name; rename one.")
    tasks = {
        f"tasks/{entry['slug']}.yaml": task_file(entry["slug"], entry.get("file"), root)
        for entry in value["tasks"]
    }
    texts |= {name: path.read_text(encoding="utf-8") for name, path in sorted(tasks.items())}
    frozen = Path(folder).resolve() / hash_of(json.dumps(texts))
    entries = [
        {**entry, "file": str(frozen / f"tasks/{entry['slug']}.yaml")} for entry in value["tasks"]
    ]
    texts[TASKS] = yaml.safe_dump({"tasks": entries}, sort_keys=True, allow_unicode=True)
    for name, text in texts.items():
        write_text(text, frozen / name)
    return [frozen / name for name in texts if name not in tasks]
