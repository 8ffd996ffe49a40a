"""The package's source files as this process first read them: what is hashed is what runs.

Python reads compiled code by its source's size and time, which `cp -p` and archives keep, and every
module at another moment. In processes of the workflow a module runs as the bytes that its hash was
made of, compiled anew or taken from a cache that is compared with these bytes.
"""

import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from importlib.util import source_hash
from pathlib import Path
from typing import Any

CONTENTS: dict[Path, bytes] = {}
PREAMBLE_END = b"######## snakemake preamble end #########\n"
CHECKED = (3).to_bytes(4, "little")  # flags of compiled code that is compared with its source


def source(path: Path) -> bytes:
    """The bytes of a source file, whatever has happened to it since this process first read it."""
    if path not in CONTENTS:
        CONTENTS[path] = path.read_bytes()
    return CONTENTS[path]


def running_script() -> Path:
    """The file of the script that this process runs; its `source` is what really runs.

    Snakemake runs a copy, below lines of its own, which names the file.
    """
    main = sys.modules["__main__"]
    script, copy = (
        Path(main.__file__).resolve(),
        Path(getattr(main, "__real_file__", main.__file__)),
    )
    CONTENTS[script] = copy.read_bytes().rpartition(PREAMBLE_END)[2]
    return script


class _ByContent(SourceFileLoader):
    """Loads a module by the `source` of its file."""

    def get_data(self, path: str) -> bytes:
        if path == self.path:
            return source(Path(path).resolve())
        compiled = super().get_data(path)
        if compiled[4:8] != CHECKED:
            raise OSError(f"{path} says no more of its source than size and time")
        return compiled

    def set_data(self, path: str, data: bytes, **settings: Any) -> None:
        checked = data[:4] + CHECKED + source_hash(self.get_data(self.path)) + data[16:]
        super().set_data(path, checked, **settings)


def load_by_content() -> None:
    """Let this process load the package's modules, from now on, by the content of their files."""
    package = str(Path(__file__).parents[1])
    finder = FileFinder.path_hook((_ByContent, SOURCE_SUFFIXES))

    def own(folder: str) -> FileFinder:
        if not f"{folder}/".startswith(f"{package}/"):
            raise ImportError
        return finder(folder)

    sys.path_hooks.insert(0, own)
    for folder in [one for one in sys.path_importer_cache if one.startswith(package)]:
        del sys.path_importer_cache[folder]
