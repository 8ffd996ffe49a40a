"""The bibliography of the works that tables cite, `references.bib` beside this module."""

from pathlib import Path

BIBLIOGRAPHY = Path(__file__).with_name("references.bib")
