"""The configuration as a run started with it, for the jobs that read it again later.

Jobs on a cluster start long after the run did, each reading the configuration anew; an edit made
meanwhile is for the next run, not for half of this one.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tracecal.files import write_text


def freeze(value: Mapping[str, Any], root: Path, folder: str | Path) -> Path:
    """Copy a valid configuration and its task files below `folder`; the copied config's path.

    The copy names its own task files. Its folder is named after the contents, so that what was
    frozen once never changes.
    """
    files = {
        entry["slug"]: (root / (entry.get("file") or f"config/tasks/{entry['slug']}.yaml"))
        for entry in value["tasks"]
    }
    texts = {slug: path.read_text(encoding="utf-8") for slug, path in sorted(files.items())}
    plain = yaml.safe_dump(dict(value), sort_keys=True, allow_unicode=True)
    digest = hashlib.sha256("\0".join([plain, *texts.values()]).encode()).hexdigest()[:16]
    frozen = Path(folder).resolve() / digest
    for slug, text in texts.items():
        write_text(text, frozen / "tasks" / f"{slug}.yaml")
    tasks = [
        {**entry, "file": str(frozen / "tasks" / f"{entry['slug']}.yaml")}
        for entry in value["tasks"]
    ]
    copy = yaml.safe_dump({**value, "tasks": tasks}, sort_keys=True, allow_unicode=True)
    write_text(copy, frozen / "config.yaml")
    return frozen / "config.yaml"
