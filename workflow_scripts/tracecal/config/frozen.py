"""A frozen copy of a run's configuration, for jobs that start later.

Every job reads the configuration, on a cluster long after the run started. Reading the copy, an
edit made in between takes effect in the next run, not in half of this one.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tracecal.jobs.provenance import hash_of
from tracecal.storage.files import write_text
from tracecal.tasks.spec import task_file

CODE = "code.json"


def freeze(
    value: Mapping[str, Any], root: Path, folder: str | Path, code: Mapping[str, str]
) -> Path:
    """Copy a valid configuration and its task files to a folder below `folder`; return its path.

    `code`, the version of each script that the run will start, is written beside it. The copy
    refers to its own task files. Its folder is named after the contents, so a copy never changes.
    """
    paths = {
        entry["slug"]: task_file(entry["slug"], entry.get("file"), root) for entry in value["tasks"]
    }
    texts = {slug: path.read_text(encoding="utf-8") for slug, path in sorted(paths.items())}
    versions = json.dumps(code, indent=1, sort_keys=True)
    plain = yaml.safe_dump(dict(value), sort_keys=True, allow_unicode=True) + versions
    frozen = Path(folder).resolve() / hash_of("\0".join([plain, *texts.values()]))
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
    """The script versions frozen with a run's configuration, the first of `configs`.

    Empty without a frozen copy, as in a workflow that uses this one as a module.
    """
    if not configs or not (versions := Path(configs[0]).with_name(CODE)).exists():
        return {}
    return json.loads(versions.read_text(encoding="utf-8"))
