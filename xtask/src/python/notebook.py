"""Runs the first notebook, which must show a plot."""

import nbformat
from nbclient import NotebookClient

book = nbformat.read("five_policies.ipynb", as_version=4)
NotebookClient(book, timeout=300).execute()
outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
assert any("image/svg+xml" in output.get("data", {}) for output in outputs), "the notebook shows no plot"
