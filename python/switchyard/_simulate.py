"""`simulate`, with the inputs of the command."""

from __future__ import annotations

import json
import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._native import CompiledPolicies, Error
from ._result import Result
from .policy import PythonPolicy
from .traces import Trace

_DEFAULTS: dict[str, Any] = {
    "seconds": None,
    "config": None,
    "zoo": None,
    "policies_dir": None,
    "workers": None,
    "sweep": None,
    "service": "profiled",
    "percentile": "p95",
    "late": None,
    "latencies": None,
    "window_budget_ms": None,
    "link_us": 0,
    "wire_us": 0,
    "cold": False,
}


# Of the command.
_SEEDS_MAX, _WORKERS_MAX, _WINDOW_BUDGET_MAX_MS, _WAY_MAX_US = 1_000, 10_000, 60_000, 60_000_000

_THREADS_MAX = 1_024

# Characters.
_BAR_WIDTH = 40


@dataclass(frozen=True)
class Policy:
    """A policy: a name of a bundled one, a file `*.wasm`, or `edf`, the native fallback.

    `name` is its name in results; `settings` replace those of its file, field by field.
    """

    policy: str
    name: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def _parts(self) -> tuple[str, str, str]:
        return (self.name or self.policy, self.policy, _toml(self.settings))


def simulate(
    profile: str | os.PathLike[str],
    workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
    policies: str | os.PathLike[str] | Policy | PythonPolicy | Iterable[str | os.PathLike[str] | Policy | PythonPolicy],
    *,
    seeds: int | Iterable[int] = 1,
    seconds: float | None = None,
    config: str | os.PathLike[str] | None = None,
    zoo: str | os.PathLike[str] | None = None,
    policies_dir: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    sweep: str | None = None,
    service: str = "profiled",
    percentile: str = "p95",
    late: str | None = None,
    latencies: str | None = None,
    window_budget_ms: int | None = None,
    link_us: int = 0,
    wire_us: int = 0,
    cold: bool = False,
    threads: int = 0,
    keep: Iterable[str] = (),
    compiled: CompiledPolicies | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Result:
    """Runs policies on a workload in virtual time, all on the same arrivals.

    Takes the inputs of `switchyard simulate` (`switchyard simulate --help`) and gives the same results, bit
    for bit. `seeds` is a number of runs with seeds from 1, or the seeds themselves. `workload` is a spec such
    as "poisson:400", the name of a JSON file, its contents as a dictionary, or a trace. `threads` is the number of
    threads that run, by default one per core; the interpreter's lock is free meanwhile.
    `window_budget_ms` limits a window of components, but not of a `PythonPolicy`. `keep` names tables of the result,
    "requests", "batches" or "windows", which are otherwise made by another run when they are asked for.
    `compiled` keeps compiled components between calls. `progress` shows a bar, or is called with the number of runs that
    are done and that of all runs.

    Raises `switchyard.Error` (a `ValueError`) if an input cannot be used.
    """
    listed = _listed(policies)
    numbers = _seeds(seeds)
    chosen = {
        "seconds": seconds,
        "config": config,
        "zoo": zoo,
        "policies_dir": policies_dir,
        "workers": workers,
        "sweep": sweep,
        "service": service,
        "percentile": percentile,
        "late": late,
        "latencies": latencies,
        "window_budget_ms": window_budget_ms,
        "link_us": link_us,
        "wire_us": wire_us,
        "cold": cold,
    }
    options = inputs(profile, workload, numbers, **chosen)
    options["policies"] = [policy._parts() if isinstance(policy, Policy) else policy for policy in listed if not _own(policy)]
    options["python_policies"] = [policy._options(at) for at, policy in enumerate(listed) if _own(policy)]
    options["keep"] = [keep] if isinstance(keep, str) else list(keep)
    options["threads"], options["compiled"] = whole("threads", threads, 0, _THREADS_MAX), compiled
    if not isinstance(progress, bool) and not callable(progress):
        raise Error(f"progress: {progress!r}, must be True, False or a function of two numbers")
    options["progress"] = _Bar() if progress is True else progress or None
    shown = {"profile": os.fspath(profile), "workload": workload, "policies": listed, "seeds": numbers, **chosen}
    options["command"] = _call(shown)
    with errors_of(workload):
        return Result(_native.simulate(options))


class _Bar:
    """A bar of the runs that are done, on the standard error output."""

    def __init__(self) -> None:
        self.shown = -1

    def __call__(self, done: int, count: int) -> None:
        if done == self.shown:
            return
        self.shown = done
        full = done * _BAR_WIDTH // count
        end = "\n" if done == count else ""
        print(f"\r[{'#' * full}{' ' * (_BAR_WIDTH - full)}] {done}/{count} runs", end=end, file=sys.stderr, flush=True)


def errors_of(workload: Any) -> AbstractContextManager[None]:
    """Errors about a trace name its rows."""
    return workload.named() if isinstance(workload, Trace) else nullcontext()


def _listed(policies: Any) -> list[str | Policy | PythonPolicy]:
    one = (str, os.PathLike, Policy, PythonPolicy)
    if not isinstance(policies, one) and not isinstance(policies, Iterable):
        policies = [policies]
    listed = [policies] if isinstance(policies, one) else list(policies)
    for policy in listed:
        if not isinstance(policy, one):
            raise Error(f"policies: {policy!r}, must be a name, a file *.wasm, a Policy or a PythonPolicy")
    return [os.fspath(policy) if isinstance(policy, os.PathLike) else policy for policy in listed]


def _seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        return [whole("seeds", seed, 0, 2**64 - 1) for seed in seeds]
    # The native module refuses no seeds and too many.
    return list(range(1, whole("seeds", seeds, 0, 2**32) + 1)[: _SEEDS_MAX + 1])


def whole(field: str, value: Any, least: int, most: int) -> int:
    """A whole number in a range."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise Error(f"{field}: {value!r}, must be a whole number from {least} to {most}")
    return number


def inputs(
    profile: str | os.PathLike[str],
    workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
    seeds: list[int],
    **chosen: Any,
) -> dict[str, Any]:
    """The inputs of a run for the native module, without policies; `chosen` replace the defaults."""
    if isinstance(workload, Trace):
        workload = workload.to_workload()
    is_json = isinstance(workload, Mapping)
    if not is_json and not isinstance(workload, (str, os.PathLike)):
        way_out = "`switchyard.Trace.of_frame(frame)` makes a trace of columns"
        raise Error(f"workload: {type(workload).__name__}, must be a spec, a JSON file, a dictionary or a Trace; {way_out}")
    unknown = set(chosen) - set(_DEFAULTS)
    if unknown:
        raise TypeError(f"{', '.join(sorted(unknown))}: unknown, must be one of {', '.join(_DEFAULTS)}")
    options = {**_DEFAULTS, **chosen}
    if options["workers"] is not None:
        whole("workers", options["workers"], 1, _WORKERS_MAX)
    if options["window_budget_ms"] is not None:
        whole("window_budget_ms", options["window_budget_ms"], 1, _WINDOW_BUDGET_MAX_MS)
    for name in ["link_us", "wire_us"]:
        whole(name, options[name], 0, _WAY_MAX_US)
    if options["seconds"] is not None and not isinstance(options["seconds"], (int, float)):
        raise Error(f"seconds: {options['seconds']!r}, must be a positive number")
    for name in ["config", "zoo", "policies_dir"]:
        options[name] = None if options[name] is None else Path(options[name])
    return {
        **options,
        "package": __file__,
        "command": "",
        "threads": 0,
        "keep": [],
        "compiled": None,
        "progress": None,
        "profile": Path(profile),
        "workload": json.dumps(workload) if is_json else os.fspath(workload),
        "workload_is_json": is_json,
        "policies": [],
        "python_policies": [],
        "seeds": [whole("seed", seed, 0, 2**64 - 1) for seed in seeds],
    }


def reference_profile() -> Path:
    """The profile of the reference machine, which comes with the package."""
    return Path(_native.reference_profile(__file__))


def _toml(value: Any) -> str:
    """A value of TOML on one line. Numbers keep all digits, as those of the command do."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    raise Error(f"settings: {value!r}, must be a boolean, number, string, list or dictionary")


def _own(policy: str | Policy | PythonPolicy) -> bool:
    return isinstance(policy, PythonPolicy)


def _call(options: Mapping[str, Any]) -> str:
    """The call, for the results; long values are cut."""
    words = [f"{name}={repr(value)[:200]}" for name, value in options.items() if value != _DEFAULTS.get(name)]
    return f"switchyard.simulate({', '.join(words)})"
