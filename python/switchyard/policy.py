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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import _native
from ._native import Error

__all__ = ["Catalog", "Dispatch", "Plan", "PythonPolicy", "Window"]

# Past the end of any queue: the end.
_LAST = 2**32 - 1


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
        ids = np.asarray(requests, dtype="u8").tolist()
        self.dispatches.append(Dispatch(int(worker), int(variant), ids, int(exit), int(place)))

    def reject(self, requests: Iterable[int]) -> None:
        """Refuses requests."""
        self.rejects.extend(np.asarray(requests, dtype="u8").tolist())

    def wake(self, at_us: int) -> None:
        """Opens a window at this time."""
        self.wake_us = int(at_us)


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
