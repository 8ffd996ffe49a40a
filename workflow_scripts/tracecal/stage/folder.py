"""Model folders: linking one into the run, and telling which weights it holds."""

import hashlib
from collections.abc import Collection
from pathlib import Path

from tracecal.errors import InputError
from tracecal.files import sha256


def link_model(
    source: str | Path, target: str | Path, names: Collection[str] | None = None
) -> None:
    """Make `target` a folder of links to the files `names` (all where null) of folder `source`.

    Hidden files are left out: of a folder that a rule made, Snakemake's mark of when it was made.
    Links, because weights are large; a real folder, because Snakemake marks its outputs and the
    user's folder must stay as it is. Raises `InputError` where `source` is no model folder with
    safetensors weights.
    """
    source, target = Path(source).expanduser().resolve(), Path(target)
    check_model_folder(source)
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.iterdir()):
        named = not file.name.startswith(".") if names is None else file.name in names
        if file.is_file() and named:
            (target / file.name).symlink_to(file)


def check_model_folder(folder: Path) -> None:
    """Raise `InputError` unless `folder` holds config.json and *.safetensors."""
    if not (folder / "config.json").is_file():
        raise InputError(
            f"there is no model in {folder}: config.json is missing; give the folder that "
            "save_pretrained wrote."
        )
    if not list(folder.glob("*.safetensors")):
        raise InputError(
            f"{folder} holds no *.safetensors weights; other formats can run code when loaded "
            "and are refused. Convert with model.save_pretrained(folder)."
        )


def fingerprint(folder: str | Path) -> str:
    """`sha256:` over the contents of every file that the model is loaded from."""
    digest = hashlib.sha256()
    for file in sorted(Path(folder).iterdir()):
        if file.is_file() and not file.name.startswith("."):
            digest.update(f"{file.name} {sha256(file)}\n".encode())
    return f"sha256:{digest.hexdigest()}"
