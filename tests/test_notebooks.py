"""The notebooks of examples/ run as they stand, and show what comes out."""

import ast
import io
from contextlib import redirect_stdout
from pathlib import Path

import nbformat
import pytest
from matplotlib import pyplot as plt

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
LARGEST = 150_000  # bytes


def shown(source, names):
    """What a cell prints, and its value as text, where a kernel would show it."""
    *body, last = ast.parse(source).body
    valued = isinstance(last, ast.Expr) and not source.endswith(";")
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body if valued else [*body, last], []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if valued else None
    return printed.getvalue(), None if value is None else repr(value)


def stored(cell):
    """The same of a cell as it is stored."""
    printed = "".join(one.text for one in cell.outputs if one.output_type == "stream")
    values = [one.data["text/plain"] for one in cell.outputs if one.output_type == "execute_result"]
    return printed, next(iter(values), None)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_comes_out(path, monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    cells = [one for one in nbformat.read(path, as_version=4).cells if one.cell_type == "code"]
    names = {}
    for cell in cells:
        assert shown(cell.source, names) == stored(cell), cell.source
    plt.close("all")
    assert any("image/png" in one.get("data", {}) for cell in cells for one in cell.outputs)
    assert path.stat().st_size < LARGEST
