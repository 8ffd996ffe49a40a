"""Tables and their bibliography through LaTeX, in the set-ups that a paper would use."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

PACKAGES = "booktabs multirow natbib pifont".split()

MINIMAL = r"\documentclass{article}" + "".join(rf"\usepackage{{{name}}}" for name in PACKAGES)

# The paper's own set-up, acl.sty aside, which is not Debian's to ship: its page (A4, margins of
# 2.5 cm, two columns 0.6 cm apart), fonts and packages. What is not installed is left out.
ACL = r"""
\documentclass[11pt,twocolumn]{article}
\usepackage[a4paper,margin=2.5cm]{geometry}
\setlength{\columnsep}{0.6cm}
\usepackage{natbib}
\newcommand{\have}[2][]{\IfFileExists{#2.sty}{\usepackage[#1]{#2}}{}}
\have{times}\have{latexsym}\have[T1]{fontenc}\have[utf8]{inputenc}\have{microtype}
\have{inconsolata}\have{amsmath}\usepackage{graphicx}\have{xspace}\have{amsthm}\have{amssymb}
\have{algorithm}\have{algorithmic}\have{array}\have{enumitem}\have[table]{xcolor}
\usepackage{booktabs}\usepackage{multirow}\have{makecell}\have{threeparttable}\have{bbm}
\have{pifont}\have{stfloats}\have{tabularx}\have{hyperref}
"""
SETUPS = {"minimal": MINIMAL, "acl": ACL}


def require_tex() -> None:
    """Skip the test where LaTeX, BibTeX or a package that tables need is not installed."""
    for program in ("pdflatex", "bibtex", "kpsewhich"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed; .ci/run names the Debian packages")
    for name in PACKAGES:
        if subprocess.run(["kpsewhich", f"{name}.sty"], capture_output=True).returncode:
            pytest.skip(f"LaTeX's package {name} is not installed; .ci/run names Debian's")


def typeset(tables: Sequence[Path], bibliography: Path, setup: str, folder: Path) -> list[str]:
    """One PDF, `folder`/paper.pdf, of all tables; returns what LaTeX and BibTeX complain of."""
    require_tex()
    shutil.copy(bibliography, folder / "references.bib")
    inputs = ""
    for table in sorted(tables):
        shutil.copy(table, folder)
        inputs += rf"Table~\ref{{tab:{table.stem}}}.\input{{{table.stem}}}\clearpage" + "\n"
    (folder / "paper.tex").write_text(
        f"{SETUPS[setup]}\n\\begin{{document}}\n{inputs}"
        "\\bibliographystyle{plainnat}\\bibliography{references}\n\\end{document}\n"
    )
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for command in (latex, ["bibtex", "paper"], latex, latex):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{command[0]}:\n{done.stdout[-3000:]}"
    log = (folder / "paper.log").read_text(encoding="utf-8", errors="replace")
    bibliography_log = (folder / "paper.blg").read_text(encoding="utf-8", errors="replace")
    return [*complaints(log), *re.findall(r"^Warning--.*", bibliography_log, re.MULTILINE)]


def complaints(log: str, allowance: float = 3.0) -> list[str]:
    """Boxes wider than the page by more than `allowance` points, floats too tall, missing keys."""
    log = re.sub(r"(?<=.{79})\n", "", log)  # LaTeX breaks its log at 79 characters
    found = [
        line
        for line, width in re.findall(r"^(Overfull \\hbox \(([\d.]+)pt too wide\).*)$", log, re.M)
        if float(width) > allowance
    ]
    named = r"^LaTeX Warning: (?:Float too large|.*undefined).*$|^Package natbib Warning: .*undefined.*$"
    return found + re.findall(named, log, re.MULTILINE)


def printed_text(pdf: Path) -> list[tuple[float, float, float]]:
    """Size, left and right end of all text of a PDF (points)."""
    if shutil.which("pdftohtml") is None:
        pytest.skip("pdftohtml is not installed; .ci/run names the Debian packages")
    zoom = 3  # sizes are whole numbers
    command = ["pdftohtml", "-xml", "-i", "-zoom", str(zoom), "-stdout", str(pdf)]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    fonts = dict(re.findall(r'<fontspec id="(\d+)" size="(\d+)"', page))
    places = re.findall(r'<text top="\d+" left="(\d+)" width="(\d+)"[^>]* font="(\d+)"', page)
    return [
        (int(fonts[font]) / zoom, int(left) / zoom, (int(left) + int(width)) / zoom)
        for left, width, font in places
    ]
