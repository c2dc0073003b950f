"""Policies in Python, for simulations.

    class Fifo:
        def __init__(self, catalog):
            self.catalog = catalog

        def __call__(self, window):
            plan = Plan()
            ...
            return plan

    switchyard.simulate(profile, "poisson:200", [PythonPolicy("fifo", Fifo), "fcfs"])
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._native import Error

__all__ = ["Catalog", "Dispatch", "Plan", "PythonPolicy", "Window"]

# Past the end of any queue: the end.
_LAST = 2**32 - 1

_EVENTS = ("arrival", "worker-idle", "completion")

# Exact in a double.
_US_MAX = 2**53


@dataclass(frozen=True)
class PythonPolicy:
    """A policy in Python.

    `make` is called with a `Catalog` at the beginning of each run and returns a callable that takes a `Window`
    and returns a `Plan`, or None for no decision. It must decide by its inputs alone: a simulation runs again
    for `requests()`. Its windows open every `every_us` microseconds and on the events of `on`: "arrival",
    "worker-idle", "completion". `residents` asks for the column of the same name.

    A plan is checked as in the server: a plan that breaks a rule is refused whole, counted as a fault, and the
    fallback serves the window. An exception ends the simulation.
    """

    name: str
    make: Callable[[Catalog], Callable[[Window], Plan | None]]
    every_us: int | None = None
    on: Sequence[str] = ("arrival", "worker-idle")
    residents: bool = False

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise Error(f"policies: {self.name}: make: {self.make!r}, must be a function or class that takes a Catalog")
        if self.every_us is not None and (not isinstance(self.every_us, int) or not 1 <= self.every_us <= _US_MAX):
            raise Error(f"policies: {self.name}: every_us: {self.every_us}, must be a whole number from 1 to {_US_MAX}")
        for event in self.on:
            if event not in _EVENTS:
                raise Error(f"policies: {self.name}: on: `{event}`, must be arrival, worker-idle or completion")

    def build(self, out: str | os.PathLike[str] | None = None) -> Path:
        """Builds a WebAssembly component with the same decisions, by default `NAME.wasm`. Returns its file.

        `make` must be a function or class with sources: of a file or a notebook. With it go the functions, classes
        and constants that it uses. It may import `switchyard.policy`, modules of the standard library without
        clock, files and random numbers, and numpy, of which a component has arrays of one dimension. Anything else
        is refused with its file and line. Needs the command `switchyard`, and componentize-py
        (`pip install switchyard[build]`) or PyPI.
        """
        from ._build import build

        return build(self, out)

    def _options(self, position: int) -> dict[str, Any]:
        def make(catalog: _native.Catalog) -> Callable[[_native.Window], Plan | None]:
            schedule = self.make(Catalog(catalog))

            def checked(window: _native.Window) -> Plan | None:
                plan = schedule(Window(window))
                if plan is None or isinstance(plan, Plan):
                    return plan
                raise Error(f"policies: {self.name}: returned {type(plan).__name__}, must be a Plan or None")

            return checked

        return {
            "position": position,
            "name": self.name,
            "make": make,
            "every_us": self.every_us,
            "on": list(self.on),
            "residents": self.residents,
        }


@dataclass(frozen=True)
class Dispatch:
    """A batch of whole requests for a worker; ids and indices as in the window and the catalog."""

    worker: int
    variant: int
    requests: Sequence[int]
    exit: int
    place: int


class Plan:
    """The decisions of one window. Requests that it does not name stay pending."""

    def __init__(self) -> None:
        self.dispatches: list[Dispatch] = []
        self.revokes: list[int] = []
        self.rejects: list[int] = []
        self.wake_us: int | None = None

    def dispatch(self, worker: int, variant: int, requests: Iterable[int], exit: int, place: int = _LAST) -> None:
        """Queues a batch on a worker, which an exit of the variant answers; `place` 0 is the head of the queue."""
        self.dispatches.append(
            Dispatch(
                _index("worker", worker),
                _index("variant", variant),
                _ids(requests),
                _index("exit", exit),
                _index("place", place),
            )
        )

    def reject(self, requests: Iterable[int]) -> None:
        """Refuses requests."""
        self.rejects.extend(_ids(requests))

    def wake(self, at_us: int) -> None:
        """Opens a window at this time."""
        if not 0 <= at_us < 2**64:
            raise Error(f"plan: wake: {at_us}, must be a time in microseconds from 0 on")
        self.wake_us = int(at_us)


def _index(field: str, value: int) -> int:
    """A position; whether it is one of the catalog is checked with the plan."""
    number = int(value)
    if number != value or not 0 <= number <= _LAST:
        raise Error(f"plan: {field}: {value}, must be a whole number from 0 to {_LAST}")
    return number


def _ids(requests: Iterable[int]) -> list[int]:
    if isinstance(requests, np.ndarray):
        requests = requests.tolist()
    ids = [int(request) for request in requests]
    for row, (number, given) in enumerate(zip(ids, requests)):
        if number != given or not 0 <= number < 2**64:
            raise Error(f"plan: requests[{row}]: {given}, must be a number of `window.requests.id`")
    return ids


class Catalog:
    """Apps, variants and workers, in lists whose positions are the indices of windows and plans."""

    def __init__(self, native: _native.Catalog) -> None:
        self._native = native
        data = json.loads(native.json())
        self.apps: list[dict[str, Any]] = data["apps"]
        self.variants: list[dict[str, Any]] = data["variants"]
        self.workers: list[dict[str, Any]] = data["workers"]

    def variants_of(self, app: int) -> list[int]:
        """The indices of an app's variants."""
        name = self.apps[app]["name"]
        return [at for at, variant in enumerate(self.variants) if variant["app"] == name]

    def latency_us(self, worker: int, variant: int, batch: int, exit: int | None = None) -> int | None:
        """The profiled time of a batch, by default to the last exit; None if the profile lacks it."""
        last = len(self.variants[variant]["exits"]) - 1
        return self._native.latency_us(worker, variant, last if exit is None else exit, batch)

    def last_exit(self, variant: int) -> int:
        """The last exit of a variant."""
        return len(self.variants[variant]["exits"]) - 1


class _Table:
    """Columns of a window, made on their first use."""

    def __init__(self, native: _native.Window, table: str) -> None:
        self._native = native
        self._table = table

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        kind, buffer = self._native.column(self._table, name)
        column = np.frombuffer(buffer, dtype=kind)
        setattr(self, name, column)
        return column


class Window:
    """A window. `requests` are pending, oldest first: `id`, `app`, `arrival_us`, `deadline_us`, `priority`,
    `min_accuracy`. `workers`, in the catalog's order: `busy_until_us`, `free_at_us`, `running_variant`, `queued`,
    `free_memory`, `up`. `residents`, if asked for: `worker`, `variant`.
    """

    def __init__(self, native: _native.Window) -> None:
        self.id: int = native.id
        self.now_us: int = native.now_us
        self._native = native
        self.requests = _Table(native, "requests")
        self.workers = _Table(native, "workers")
        self.residents = _Table(native, "residents")

    @cached_property
    def arrival_rate(self) -> np.ndarray:
        """Requests per second of each app over the last 500 ms."""
        return _Table(self._native, "apps").arrival_rate
