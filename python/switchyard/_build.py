"""A policy in Python as a component: a project around its sources, built by the command."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from . import _sources
from ._native import Error

if TYPE_CHECKING:
    from .policy import PythonPolicy

# The version of the scaffold (`switchyard policy new --lang python`).
COMPONENTIZE_PY = "componentize-py==0.25.1"

# Names of files, labels of metrics.
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

# Lines of the tools' output in a message.
_LINES = 20

_PACKAGE = Path(__file__).parent


def build(policy: PythonPolicy, out: str | os.PathLike[str] | None) -> Path:
    """Builds the component of a policy. Returns its file."""
    file = Path(f"{policy.name}.wasm" if out is None else out).absolute()
    if file.suffix != ".wasm":
        raise Error(f"out: {file}, must end in .wasm")
    text = _module(policy)
    with tempfile.TemporaryDirectory(prefix="switchyard-") as folder:
        project = Path(folder) / policy.name
        _write(project, policy.name, text)
        _run([str(_program()), "policy", "build", str(project), "--out", str(file), "--json"])
    return file


def _module(policy: PythonPolicy) -> str:
    """The module `built_policy`."""
    if not _NAME.fullmatch(policy.name) or len(policy.name) > 64:
        raise Error(f"name: {policy.name!r}, must be at most 64 lower-case letters, digits and single hyphens, a letter first")
    sources = _sources.module_of(policy.make, policy.name)
    words = [repr(policy.name), policy.make.__name__]
    words += [f"{field}={getattr(policy, field)!r}" for field in ["every_us", "when_empty"]]
    words += [f"{field}={list(getattr(policy, field))!r}" for field in ["on", "wants"]]
    made = f"\n\nfrom switchyard.policy import PythonPolicy as _PythonPolicy\n\nPOLICY = _PythonPolicy({', '.join(words)})\n"
    return sources + made


def _write(project: Path, name: str, text: str) -> None:
    """A project as `switchyard policy build` takes it."""
    shutil.copytree(_PACKAGE / "_component", project, ignore=shutil.ignore_patterns("__pycache__"))
    for shared in ["plan.py", "policy.py"]:
        shutil.copy(_PACKAGE / shared, project / "switchyard" / shared)
    (project / "built_policy.py").write_text(text, encoding="utf-8")
    (project / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n', encoding="utf-8")
    (project / "requirements.txt").write_text(f"{COMPONENTIZE_PY}\n", encoding="utf-8")


def _program() -> Path:
    """The command: of the variable, of this environment, or in the path."""
    given = os.environ.get("SWITCHYARD_PROGRAM")
    if given:
        return Path(given)
    own = Path(sys.executable).with_name("switchyard")
    found = str(own) if own.is_file() else shutil.which("switchyard")
    if found is None:
        raise Error(f"switchyard: is neither {own} nor in PATH; install the wheel, or set SWITCHYARD_PROGRAM to the command")
    return Path(found)


def _run(command: list[str]) -> None:
    environment = dict(os.environ)
    own = Path(sys.executable).with_name("componentize-py")
    if own.is_file():
        environment.setdefault("SWITCHYARD_COMPONENTIZE_PY", str(own))
    try:
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    except OSError as error:
        raise Error(f"{command[0]}: {error}; set SWITCHYARD_PROGRAM to the command `switchyard`") from None
    if ran.returncode:
        shown = "\n".join(ran.stderr.strip().splitlines()[-_LINES:])
        raise Error(f"`{' '.join(command[:3])}` failed; it needs PyPI, or `pip install {COMPONENTIZE_PY}` next to this module:\n{shown}")
    json.loads(ran.stdout)
