"""The citation keys of a bibliography, and those that LaTeX text cites."""

import re


def keys(text: str) -> list[str]:
    """The citation keys of BibTeX entries, in their order."""
    return re.findall(r"^@\w+\{([^,\s]+),", text, re.MULTILINE)


def cited(tex: str) -> set[str]:
    r"""The keys that LaTeX text names in \citep and its kin."""
    lists = re.findall(r"\\cite[a-z]*\{([^}]*)\}", tex)
    return {key.strip() for keys in lists for key in keys.split(",")}
