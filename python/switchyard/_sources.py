"""The sources of a function or class with all that they use, as one module for a component."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import linecache
import symtable
import textwrap
from collections import deque
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from . import policy as _policy
from ._native import Error

# Modules that give the same results in a component. None of them has a clock, files or random numbers.
MODULES = [
    "abc", "bisect", "collections", "collections.abc", "copy", "dataclasses", "enum", "fractions", "functools", "heapq",
    "itertools", "math", "operator", "statistics", "typing",
]  # fmt: skip

_NUMPY = Path(__file__).parent / "_component" / "numpy" / "__init__.py"

_FORBIDDEN = ["breakpoint", "compile", "eval", "exec", "globals", "id", "input", "locals", "open", "print", "vars", "__import__"]

_CONSTANTS = (bool, int, float, str, type(None))


def module_of(make: Any, name: str) -> str:
    """The text of a module with `make` and all functions, classes and constants that it uses.

    Raises `switchyard.Error` with file, line, reason and way out if a part of it cannot be in a component.
    """
    sources = _Sources(name)
    sources.add(make)
    return sources.text()


class _Sources:
    def __init__(self, name: str) -> None:
        self.name = name
        self.imports: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        # By name, in the order of their ends: a class comes after its bases.
        self.parts: dict[str, str] = {}
        self.values: dict[str, Any] = {}

    def text(self) -> str:
        lines = ["from __future__ import annotations", *self.imports.values()]
        lines += [f"{name} = {value}" for name, value in self.constants.items()]
        return "\n".join([*lines, *self.parts.values()]) + "\n"

    def add(self, value: Any) -> None:
        """A function or class, after those that it uses."""
        shown = getattr(value, "__qualname__", repr(value))
        if not inspect.isfunction(value) and not inspect.isclass(value):
            raise Error(f"policies: {self.name}: {shown}: is a {type(value).__name__}, must be a function or class, defined by def or class")
        try:
            file, first, code = _source(value)
        except (OSError, TypeError, SyntaxError) as error:
            raise Error(f"policies: {self.name}: {shown}: has no source ({error}); define it in a file, or in a notebook without magics") from None
        if value.__name__ == "<lambda>" or "<locals>" in shown:
            raise _refused(file, first, shown, "is defined inside of a function or by lambda", "define it by def or class at the left margin")
        self.values[value.__name__] = value
        use = _Use(self, file, first, shown)
        use.scope, use.globals = _scope(value), _globals(code)
        tree = ast.parse(code)
        use.own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        use.own |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)}
        use.visit(tree)
        self.parts[value.__name__] = f"\n\n{code}"

    def use(self, name: str, value: Any, use: _Use, node: ast.AST) -> None:
        """A global name of a source."""
        if name in self.values:
            if self.values[name] is not value:
                use.refuse(node, f"two different values have the name `{name}`", "rename one of them")
            return
        line = None
        if isinstance(value, ModuleType):
            use.module(node, value.__name__)
            line = f"import {value.__name__} as {name}"
        elif name in _policy.__all__ and getattr(_policy, name) is value:
            line = f"from switchyard.policy import {name}"
        elif value is Error:
            line = f"from switchyard import Error as {name}"
        elif not isinstance(value, _CONSTANTS) and (home := _home(value)):
            line = f"from {home} import {value.__name__} as {name}"
        if line:
            self.imports[name] = line
        elif _is_constant(value):
            self.constants[name] = repr(value)
        elif (inspect.isfunction(value) or inspect.isclass(value)) and value.__name__ == name:
            self.add(value)
            return
        else:
            use.refuse(node, f"`{name}` is a {type(value).__name__}", "use functions, classes, numbers, strings, and lists and dictionaries of them")
        self.values[name] = value


class _Use(ast.NodeVisitor):
    """Follows the global names of one source."""

    def __init__(self, sources: _Sources, file: str, first: int, shown: str) -> None:
        self.sources, self.file, self.first, self.shown = sources, file, first, shown
        self.scope: dict[str, Any] = {}
        self.globals: set[str] = set()
        self.own: set[str] = set()
        """Attributes that the source defines."""

    def refuse(self, node: ast.AST, reason: str, way_out: str) -> None:
        raise _refused(self.file, self.first + getattr(node, "lineno", 1) - 1, self.shown, reason, way_out)

    def module(self, node: ast.AST, module: str) -> None:
        if module not in [*MODULES, "numpy", "switchyard.policy"]:
            self.refuse(node, f"module `{module}` is not available in a component", f"use only numpy, switchyard.policy, {', '.join(MODULES)}")

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.module(node, alias.name)
            self.scope[alias.asname or alias.name] = importlib.import_module(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.module(node, node.module or ".")
        for alias in node.names:
            if node.module == "numpy":
                self.numpy(node, alias.name)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id not in self.globals:
            return
        if node.id in self.scope:
            self.sources.use(node.id, self.scope[node.id], self, node)
        elif node.id in _FORBIDDEN:
            self.refuse(node, f"`{node.id}` is not available in a component", "decide by catalog and window alone")
        elif not hasattr(builtins, node.id):
            self.refuse(node, f"`{node.id}` is not defined", "define it before the call of build")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = node.value
        found = self.scope.get(owner.id) if isinstance(owner, ast.Name) else None
        if isinstance(found, ModuleType) and found.__name__ == "numpy":
            self.numpy(node, node.attr)
        elif node.attr in _missing_methods() - self.own:
            self.refuse(node, f"arrays have no `{node.attr}` in a component", "use another function, or lists (tolist)")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp | ast.AugAssign) -> None:
        if isinstance(node.op, ast.MatMult):
            self.refuse(node, "`@` is not available in a component", "use (one * other).sum()")
        self.generic_visit(node)

    visit_AugAssign = visit_BinOp

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "argsort":
            kinds = [word.value for word in node.keywords if word.arg == "kind"]
            if not any(isinstance(kind, ast.Constant) and kind.value == "stable" for kind in kinds):
                self.refuse(node, "argsort orders equal elements at will", 'use argsort(kind="stable")')
        self.generic_visit(node)

    def numpy(self, node: ast.AST, name: str) -> None:
        if name not in numpy_names():
            self.refuse(node, f"numpy.{name} is not available in a component", f"use {', '.join(numpy_names())}, or lists (tolist)")


@cache
def numpy_names() -> list[str]:
    """The names of numpy that a component has."""
    tree = ast.parse(_NUMPY.read_text(encoding="utf-8"))
    made = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in tree.body:
        if isinstance(node, ast.Assign):
            made += [name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)]
    made += ["array", "ndarray"]
    return sorted(name for name in made if not name.startswith("_"))


def _source(value: Any) -> tuple[str, int, str]:
    """File, first line and text of a function or class."""
    methods = [function for function in map(_function, vars(value).values()) if function] if inspect.isclass(value) else []
    files = [method.__code__.co_filename for method in methods]
    files = [file for file in files if file != "<string>"]
    text = "".join(linecache.getlines(files[0])) if files else ""
    # A class of a notebook is in no module's file.
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name == value.__name__:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return files[0], first, "".join(text.splitlines(keepends=True)[first - 1 : node.end_lineno])
    lines, first = inspect.getsourcelines(value)
    return inspect.getsourcefile(value) or "?", first, textwrap.dedent("".join(lines))


def _function(member: Any) -> Any:
    """The function of a method."""
    function = getattr(member, "__func__", member)
    return function if inspect.isfunction(function) else None


@cache
def _missing_methods() -> set[str]:
    """The attributes of numpy's arrays that those of a component lack, and that no other type has."""
    tree = ast.parse((_NUMPY.parent / "arrays.py").read_text(encoding="utf-8"))
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    others = {name for kind in [list, dict, set, str, int, float, deque] for name in dir(kind)}
    return {name for name in dir(np.ndarray) if not name.startswith("_")} - there - others


def _globals(code: str) -> set[str]:
    """The global names that a source refers to, except in annotations and of itself."""
    names: set[str] = set()
    top = symtable.symtable("from __future__ import annotations\n" + code, "policy", "exec")
    names |= {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced() and not symbol.is_assigned()}
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
        tables += table.get_children()
    return names


def _scope(value: Any) -> dict[str, Any]:
    """The globals of a function, or of the module of a class."""
    if inspect.isfunction(value):
        return dict(value.__globals__)
    for function in filter(None, map(_function, vars(value).values())):
        if function.__module__ == value.__module__ and function.__code__.co_filename != "<string>":
            return dict(function.__globals__)
    module = inspect.getmodule(value)
    return dict(vars(module)) if module else {}


def _home(value: Any) -> str | None:
    """The module of `MODULES` or numpy that has a value."""
    name = getattr(value, "__name__", None)
    for module in [*MODULES, "numpy"]:
        if name and getattr(importlib.import_module(module), name, None) is value:
            return module
    return None


def _is_constant(value: Any) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)) and type(value) in (list, tuple, set, frozenset):
        return all(map(_is_constant, value))
    if type(value) is dict:
        return all(_is_constant(each) for item in value.items() for each in item)
    # An infinite number has no literal.
    return isinstance(value, _CONSTANTS) and type(value) in _CONSTANTS and repr(value) not in ("inf", "-inf", "nan")


def _refused(file: str, line: int, shown: str, reason: str, way_out: str) -> Error:
    code = linecache.getline(file, line).strip()
    return Error(f"{file}:{line}: {shown}: {reason}; {way_out}" + (f" (`{code}`)" if code else ""))
