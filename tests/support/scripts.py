"""Running a rule's script as Snakemake would, with files and settings of a test's own."""

import runpy
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from trace_workflow.jobs.code_hash import code_version

SCRIPTS = Path(__file__).resolve().parents[2] / "workflow_scripts"


class Named(SimpleNamespace):
    """As Snakemake's own: values by name and, where they are files, by number."""

    def __iter__(self):
        return iter(vars(self).values())

    def __getitem__(self, key: int | str) -> Any:
        return vars(self)[key] if isinstance(key, str) else list(self)[key]

    def items(self):
        return vars(self).items()

    def keys(self):
        return vars(self).keys()

    def get(self, key: str, default: Any = None) -> Any:
        return vars(self).get(key, default)


def run_script(
    script: str,
    folder: Path,
    *,
    input: Any = (),
    output: Mapping[str, Path],
    params: Mapping[str, Any] = {},
    resources: Mapping[str, Any] = {},
    modules: tuple[str, ...] = (),
    **wildcards: str,
) -> None:
    """Run `script` (of workflow_scripts, with its folder); its log lies below `folder`.

    `modules` are those that the script loads by name.
    """
    path = SCRIPTS / script
    given = Named(**input) if isinstance(input, Mapping) else input
    snakemake = SimpleNamespace(
        input=given,
        output=Named(**output),
        params=Named(**params, code=code_version(path, *modules), made_with=""),
        resources=Named(**resources),
        wildcards=Named(**wildcards),
        log=[str(folder / "logs/job.log")],
        threads=1,
    )
    # As a program of its own: a job asks which script it is.
    runpy.run_path(str(path), {"snakemake": snakemake}, run_name="__main__")
