"""The works that tables cite, as `references.bib` beside this module holds them."""

import re
from pathlib import Path

BIBLIOGRAPHY = Path(__file__).with_name("references.bib")


def keys(text: str) -> list[str]:
    """The citation keys of BibTeX entries, in their order."""
    return re.findall(r"^@\w+\{([^,\s]+),", text, re.MULTILINE)


def cited(tex: str) -> set[str]:
    r"""The keys that LaTeX text names in \citep and its kin."""
    lists = re.findall(r"\\cite[a-z]*\{([^}]*)\}", tex)
    return {key.strip() for keys in lists for key in keys.split(",")}
