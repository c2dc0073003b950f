"""`simulate`, with the inputs of the command."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _native
from ._result import Result
from .traces import Trace


@dataclass(frozen=True)
class Policy:
    """A policy: a name of a bundled one, a file `*.wasm`, or `edf`, the native fallback.

    `name` is its name in results; `settings` replace those of its file, field by field.
    """

    policy: str
    name: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def _parts(self) -> tuple[str, str, str]:
        return (self.name or self.policy, self.policy, json.dumps(dict(self.settings)))


def simulate(
    profile: str | os.PathLike[str],
    workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
    policies: str | Policy | Iterable[str | Policy],
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
    cold: bool = False,
    threads: int = 0,
) -> Result:
    """Runs policies on a workload in virtual time, all on the same arrivals.

    Takes the inputs of `switchyard simulate` (`switchyard simulate --help`) and gives the same results, bit
    for bit. `seeds` is a number of runs with seeds from 1, or the seeds themselves. `workload` is a spec such
    as "poisson:400", the name of a JSON file, its contents as a dictionary, or a trace. `threads` is the number of
    threads that run, by default one per core; the interpreter's lock is free meanwhile.

    Raises `switchyard.Error` (a `ValueError`) if an input cannot be used.
    """
    listed = [policies] if isinstance(policies, (str, Policy)) else list(policies)
    if isinstance(workload, Trace):
        workload = workload.to_workload()
    is_json = isinstance(workload, Mapping)
    numbers = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    options = {
        "profile": os.fspath(profile),
        "workload": json.dumps(workload) if is_json else os.fspath(workload),
        "workload_is_json": is_json,
        "policies": [policy._parts() if isinstance(policy, Policy) else policy for policy in listed],
        "seeds": numbers,
        "seconds": seconds,
        "config": _path(config),
        "zoo": _path(zoo),
        "policies_dir": _path(policies_dir),
        "workers": workers,
        "sweep": sweep,
        "service": service,
        "percentile": percentile,
        "late": late,
        "latencies": latencies,
        "cold": cold,
    }
    own = {"package": __file__, "command": _call(options), "threads": threads}
    return Result(_native.simulate({**options, **own}))


def reference_profile() -> Path:
    """The profile of the reference machine, which comes with the package."""
    return Path(_native.reference_profile(__file__))


def _path(path: str | os.PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)


def _call(options: Mapping[str, Any]) -> str:
    """The call, for the results; long workloads are cut."""
    shown = {name: value for name, value in options.items() if value is not None and name != "workload_is_json"}
    words = ", ".join(f"{name}={repr(value)[:200]}" for name, value in shown.items())
    return f"switchyard.simulate({words})"
