"""Write a folder for a run: a Snakefile that uses the workflow, a configuration and a profile.

python workflow_scripts init FOLDER [--configfile config/example.yaml]
"""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

from trace_workflow.config.tasks import local_path
from trace_workflow.jobs.code_hash import FOLDER, SCRIPTS
from tracecal.errors import InputError
from tracecal.io.input_files import read_yaml
from tracecal.io.regular_files import write_text

ROOT = SCRIPTS.parent
SNAKEFILE = """\
# A run of the workflow that compares confidence scores of language models: its rules, as a module.
{start}module trace:
    snakefile:
        {snakefile}
    config:
        config


use rule * from trace
"""
OF_CHECKOUT = SNAKEFILE.format(start="", snakefile=json.dumps(str(ROOT / "Snakefile")))
OF_PACKAGE = SNAKEFILE.format(
    start="from trace_workflow.jobs.code_hash import SCRIPTS\n\n\n",
    snakefile='str(SCRIPTS.parent / "Snakefile")',
)
PROFILE = "profiles/default/config.yaml"


def write_folder(folder: Path, configfile: str) -> list[Path]:
    """Write the files of a run into `folder`; returns their paths.

    `configfile` is a file, or one of the workflow's own. Raises `InputError` where it is not YAML,
    where `folder` is none, or where one of the files is there already.
    """
    configuration = Path(local_path(configfile, ROOT))
    read_yaml(configuration)
    contents = {
        folder / "Snakefile": OF_CHECKOUT if SCRIPTS == FOLDER else OF_PACKAGE,
        folder / "config/config.yaml": configuration.read_text(encoding="utf-8"),
        folder / "config/schema.json": (ROOT / "config/schema.json").read_text(encoding="utf-8"),
        folder / PROFILE: (ROOT / PROFILE).read_text(encoding="utf-8"),
    }
    if present := [path for path in contents if os.path.lexists(path)]:
        raise InputError(f"{present[0]} is there already; name a folder without it.")
    try:
        for path, text in contents.items():
            write_text(text, path)
    except OSError as error:  # the folder is a file, or a link to nothing
        raise InputError(
            f"{error.filename or folder} cannot be written: {error.strerror}."
        ) from error
    return list(contents)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="init", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder to write; it may exist")
    parser.add_argument(
        "--configfile",
        default="config/example.yaml",
        help="the configuration to begin with (default: %(default)s)",
    )
    options = parser.parse_args()
    print(*write_folder(options.folder, options.configfile), sep="\n")
    folder, python = shlex.quote(str(options.folder)), shlex.quote(sys.executable)
    print(f"Edit config/config.yaml there, then: cd {folder} && {python} -m snakemake --cores all")
