"""The works that tables cite, as `references.bib` beside this module holds them."""

from pathlib import Path

BIBLIOGRAPHY = Path(__file__).with_name("references.bib")
