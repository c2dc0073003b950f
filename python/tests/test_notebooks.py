"""The notebooks of `python/examples`, run from begin to end. The program is in $SWITCHYARD_PROGRAM."""

import os
import shutil
import socket
import tempfile
import unittest
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

# Compiling a component on a busy machine.
CELL_SECONDS = 600


def free_addresses(count):
    """Loopback addresses that are free now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


class Notebooks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # Kernels write nothing into the home folder.
        own = {f"JUPYTER_{kind}_DIR": str(self.folder / kind.lower()) for kind in ["CONFIG", "DATA", "RUNTIME"]}
        before = dict(os.environ)
        self.addCleanup(os.environ.update, {name: before[name] for name in own if name in before})
        os.environ.update(own, IPYTHONDIR=str(self.folder / "ipython"))

    def run_all(self, name, replaced=()):
        """The outputs of each code cell."""
        book = nbformat.read(EXAMPLES / name, as_version=4)
        for cell in book.cells:
            for before, after in replaced:
                cell.source = cell.source.replace(before, after)
        shutil.copy(EXAMPLES / "requests.csv", self.folder)
        NotebookClient(book, timeout=CELL_SECONDS, resources={"metadata": {"path": str(self.folder)}}).execute()
        return [cell.outputs for cell in book.cells if cell.cell_type == "code"]

    def test_five_policies_in_ten_lines(self):
        plot, table, late = self.run_all("five_policies.ipynb")
        [figure] = [output.data["image/svg+xml"] for output in plot]
        for policy in ["fcfs", "edf", "mael", "sneakpeek", "yardmaster"]:
            self.assertIn(policy, figure)
            self.assertIn(policy, table[0].data["text/html"])
        self.assertIn("heart", late[0].data["text/plain"])
        book = nbformat.read(EXAMPLES / "five_policies.ipynb", as_version=4)
        first = next(cell.source for cell in book.cells if cell.cell_type == "code")
        self.assertLessEqual(len(first.splitlines()), 10)

    def test_from_a_function_to_a_shadow(self):
        http, admin = free_addresses(2)
        program = os.environ["SWITCHYARD_PROGRAM"]
        replaced = [("127.0.0.1:8000", http), ("127.0.0.1:8002", admin), ('"switchyard"', repr(program))]
        outputs = self.run_all("live_shadow.ipynb", replaced)
        shown = [output[-1].data["text/plain"] if output and "data" in output[-1] else "" for output in outputs]
        self.assertIn("urgent-first", shown[1])
        self.assertIn("urgent-first@python", shown[4])
        self.assertRegex(shown[5], r"\{'fcfs@[\d.]+'\}")
        self.assertRegex(shown[6], r"(?s)'policy': 'urgent-first@python',\s+'windows': [1-9]\d*,.*'failed': 0")

    def test_outputs_are_not_kept(self):
        for file in EXAMPLES.glob("*.ipynb"):
            book = nbformat.read(file, as_version=4)
            nbformat.validate(book)
            for cell in book.cells:
                if cell.cell_type == "code":
                    self.assertEqual((cell.outputs, cell.execution_count), ([], None), file.name)


if __name__ == "__main__":
    unittest.main()
