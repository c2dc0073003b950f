"""Policies in Python, for simulations.

    class Fifo:
        def __init__(self, catalog):
            self.catalog = catalog

        def __call__(self, window):
            plan = Plan()
            ...
            return plan

    switchyard.simulate(profile, "poisson:200", [PythonPolicy("fifo", Fifo), "fcfs"])

`python -m switchyard._window_speed` prints the time to read a window.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._native import Error
from .plan import Dispatch, Lane, Plan, Route

__all__ = ["OUTCOMES", "Catalog", "Dispatch", "Lane", "Plan", "PythonPolicy", "Route", "Window"]

OUTCOMES = ("in_time", "late", "rejected", "dropped", "failed", "cancelled")
"""How requests ended, by the numbers of `window.completions.outcome`."""

_EVENTS = ("arrival", "worker-idle", "completion", "evidence")

_FIELDS = ("evidence", "completions", "placed", "residents")

# Exact in a double.
_US_MAX = 2**53


@dataclass(frozen=True)
class PythonPolicy:
    """A policy in Python.

    `make` is called with a `Catalog` at the beginning of each run and returns a callable that takes a `Window`
    and returns a `Plan`, or None for no decision. It must decide by its inputs alone: a simulation runs again
    for `requests()`. Its windows open every `every_us` microseconds, with `when_empty` also while nothing is
    pending, and on the events of `on`: "arrival", "worker-idle", "completion", "evidence". `wants` names tables that
    are empty otherwise: "evidence", "completions", "placed", "residents".

    A plan is checked as in the server: a plan that breaks a rule is refused whole, counted as a fault, and the
    fallback serves the window. An exception ends the simulation. Windows have no time limit, as those of its
    component do: see `build`.
    """

    name: str
    make: Callable[[Catalog], Callable[[Window], Plan | None]]
    every_us: int | None = None
    on: Sequence[str] = ("arrival", "worker-idle")
    wants: Sequence[str] = ()
    when_empty: bool = False

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise Error(f"policies: {self.name}: make: {self.make!r}, must be a function or class that takes a Catalog")
        if self.every_us is not None and (not isinstance(self.every_us, int) or not 1 <= self.every_us <= _US_MAX):
            raise Error(f"policies: {self.name}: every_us: {self.every_us}, must be a whole number from 1 to {_US_MAX}")
        for field, given, known in [("on", self.on, _EVENTS), ("wants", self.wants, _FIELDS)]:
            for word in [given] if isinstance(given, str) else given:
                if word not in known or isinstance(given, str):
                    raise Error(f"policies: {self.name}: {field}: {word!r}, must be a list of {', '.join(known)}")

    def build(self, out: str | os.PathLike[str] | None = None) -> Path:
        """Builds a WebAssembly component with the same decisions, by default `NAME.wasm`. Returns its file.

        A window of the component is cut at `window_budget_ms` of its pool, by default 5, and counts as a fault
        `overrun`; the simulator counts a million instructions as a millisecond. An interpreter takes more of them the
        more requests are pending: simulate with `window_budget_ms=50`, and serve with the same.

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
            "when_empty": bool(self.when_empty),
            "on": list(self.on),
            "wants": list(self.wants),
        }


class Catalog:
    """Apps, variants and workers, in lists whose positions are the indices of windows and plans.

    The fields are those of the contract (`wit/0.2/scheduling.wit`), with units in their names: an exit has
    `after_stage` and `accuracy` (None: unknown), a worker its `queue_max`, `parked_max` and what it `can` run.
    """

    def __init__(self, native: _native.Catalog) -> None:
        self._native = native
        data = json.loads(native.json())
        self.apps: list[dict[str, Any]] = data["apps"]
        self.variants: list[dict[str, Any]] = data["variants"]
        self.workers: list[dict[str, Any]] = data["workers"]
        self.kinds: list[str] = data["kinds"]
        """Kinds of workers, whose positions the profile has."""
        self.percentile: float = data["percentile"]
        """Of the latencies, 0 to 1."""

    @cached_property
    def profile(self) -> list[dict[str, Any]]:
        """The latencies: `kind`, `variant`, `from_stage`, `to_stage`, `exit` (None: parked), `batch`, `latency_us`,
        `energy_uj`.
        """
        return json.loads(self._native.profile_json())

    @cached_property
    def loads(self) -> list[dict[str, Any]]:
        """The times to load a variant: `kind`, `variant`, `latency_us`."""
        return json.loads(self._native.loads_json())

    def variants_of(self, app: int) -> list[int]:
        """The indices of an app's variants."""
        name = self.apps[app]["name"]
        return [at for at, variant in enumerate(self.variants) if variant["app"] == name]

    def latency_us(self, worker: int, variant: int, batch: int, exit: int | None = None, from_stage: int = 0) -> int | None:
        """The profiled time of a batch, by default to the last exit; None if the profile lacks it."""
        exits = self.variants[variant]["exits"]
        chosen = len(exits) - 1 if exit is None else exit
        if not 0 <= chosen < len(exits):
            return None
        return self._native.latency_us(worker, variant, from_stage, exits[chosen]["after_stage"], chosen, batch)

    def parked_latency_us(self, worker: int, variant: int, batch: int, to_stage: int, from_stage: int = 0) -> int | None:
        """The profiled time of a batch whose requests are parked after `to_stage` stages."""
        return self._native.latency_us(worker, variant, from_stage, to_stage, None, batch)

    def last_exit(self, variant: int) -> int:
        """The last exit of a variant."""
        return len(self.variants[variant]["exits"]) - 1


class _Table:
    """Columns of a window: views, made on their first use."""

    def __init__(self, native: _native.Window, table: str) -> None:
        self._native = native
        self._table = table

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        column = np.frombuffer(*self._native.column(self._table, name))
        setattr(self, name, column)
        return column


class Window:
    """A window. Its tables have columns of equal lengths:

    - `requests`, pending, oldest first: `id`, `app`, `arrival_us`, `deadline_us`, `priority`, `min_accuracy`, `cost` in
      rows of the profile
    - `progress` of those that are parked: `index` in `requests`, `worker`, `variant`, `stages_run`
    - `workers`, in the catalog's order: `busy_until_us`, `free_at_us`, `running_since_us`, `running_variant`, `queued`,
      `parked`, `free_memory`, `up`, `incarnation`

    With `wants` of the policy also:

    - `evidence` that is ready: `index` in `requests`; `counts`, one per class of the app, request by request
    - `placed`, requests of batches and lanes: `id`, `app`, `arrival_us`, `deadline_us`, `worker`, `variant`, `batch`,
      `state` (0 in a lane, 1 queued, 2 running)
    - `completions` since the last window: `id`, `app`, `outcome` (in `OUTCOMES`), `variant`, `exit`, `latency_us`
    - `residents`: `worker`, `variant`

    2**32 - 1 is no variant or exit. `because` names the causes of the window.

    Columns are read-only arrays over one buffer, which they keep alive: a policy may hold them longer. The buffer is
    a copy, since the scheduler goes on in its own.
    """

    def __init__(self, native: _native.Window) -> None:
        self.id: int = native.id
        self.now_us: int = native.now_us
        self._native = native
        self.requests = _Table(native, "requests")
        self.workers = _Table(native, "workers")

    def __getattr__(self, name: str) -> _Table:
        # Tables that few policies read.
        if name not in ("progress", *_FIELDS):
            raise AttributeError(f"window: has no {name}")
        table = _Table(self._native, name)
        setattr(self, name, table)
        return table

    @cached_property
    def because(self) -> list[str]:
        """Causes: "periodic", "arrival", "worker-idle", "completion", "evidence", "wake", "changed", "workers"."""
        return self._native.because

    @cached_property
    def arrival_rate(self) -> np.ndarray:
        """Requests per second of each app over the last 500 ms."""
        return _Table(self._native, "apps").arrival_rate

    @cached_property
    def slowdown(self) -> np.ndarray:
        """Observed over profiled latency of each kind of workers; empty while predictions keep to the profile."""
        return _Table(self._native, "kinds").slowdown
