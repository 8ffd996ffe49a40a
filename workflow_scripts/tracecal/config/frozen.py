"""A frozen copy of a run's configuration, for the jobs that read it again later.

Jobs on a cluster start long after the run did, and each reads the configuration anew. An edit made
in between takes effect in the next run, not in half of this one.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tracecal.storage.files import write_text
from tracecal.tasks.spec import task_file

CODE = "code.json"


def freeze(
    value: Mapping[str, Any], root: Path, folder: str | Path, code: Mapping[str, str]
) -> Path:
    """Path of a copy of a valid configuration and its task files, made below `folder`.

    `code`, the version of each script that the run will start, is written beside it. The copy
    names its own task files. Its folder is named after the contents, so a copy never changes.
    """
    files = {
        entry["slug"]: task_file(entry["slug"], entry.get("file"), root) for entry in value["tasks"]
    }
    texts = {slug: path.read_text(encoding="utf-8") for slug, path in sorted(files.items())}
    versions = json.dumps(code, indent=1, sort_keys=True)
    plain = yaml.safe_dump(dict(value), sort_keys=True, allow_unicode=True) + versions
    digest = hashlib.sha256("\0".join([plain, *texts.values()]).encode()).hexdigest()[:16]
    frozen = Path(folder).resolve() / digest
    for slug, text in texts.items():
        write_text(text, frozen / "tasks" / f"{slug}.yaml")
    tasks = [
        {**entry, "file": str(frozen / "tasks" / f"{entry['slug']}.yaml")}
        for entry in value["tasks"]
    ]
    copy = yaml.safe_dump({**value, "tasks": tasks}, sort_keys=True, allow_unicode=True)
    write_text(versions, frozen / CODE)
    write_text(copy, frozen / "config.yaml")
    return frozen / "config.yaml"


def frozen_code(configs: Sequence[str | Path]) -> dict[str, str]:
    """The versions of scripts frozen with a run's configuration, the first of `configs`.

    Empty without a frozen copy, as in a workflow that uses this one as a module.
    """
    versions = Path(configs[0]).with_name(CODE) if configs else None
    return (
        json.loads(versions.read_text(encoding="utf-8")) if versions and versions.exists() else {}
    )
