"""Execute the notebooks of this folder in place: `make notebooks`. One that fails is left as is."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tracecal.io.regular_files import write_text

HERE = Path(__file__).resolve().parent

for path in sorted(HERE.glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": HERE}}
    # Without times and versions, so that a file changes only where what it shows does.
    NotebookClient(notebook, record_timing=False, coalesce_streams=True, resources=where).execute()
    notebook.metadata["language_info"] = {"name": "python"}
    write_text(nbformat.writes(notebook) + "\n", path)
