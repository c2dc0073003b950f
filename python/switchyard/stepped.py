"""A run that its caller decides slot by slot."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import _native
from ._native import Error
from ._simulate import errors_of, inputs, whole
from .policy import Catalog, Plan, Window
from .traces import Trace

__all__ = ["Ends", "Stepped"]

# The scheduler opens no windows closer to each other.
_SLOT_MIN_US = 100

_SLOT_MAX_US = 2**53


def check(slot_us: int, options: Mapping[str, Any]) -> None:
    """Refuses options that a run decided from outside cannot have."""
    whole("slot_us", slot_us, _SLOT_MIN_US, _SLOT_MAX_US)
    if options.get("sweep") is not None:
        raise Error(f"sweep: {options['sweep']!r}, must be None: a run has one point")
    if options.get("wire_us"):
        raise Error(f"wire_us: {options['wire_us']!r}, must be 0: the ends of a slot are the server's, not the client's")


class Ends(NamedTuple):
    """Requests that ended in a slot."""

    in_time: int
    late: int
    unanswered: int


class Stepped:
    """A run of one seed: `window` shows the begin of a slot, `step` decides it and runs to the next one.

    Takes the inputs of `simulate` but policies, seeds and sweeps. `duration_us` is the end of the arrivals.
    """

    def __init__(
        self,
        profile: str | os.PathLike[str],
        workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
        *,
        slot_us: int = 10_000,
        seed: int = 1,
        **options: Any,
    ) -> None:
        check(slot_us, options)
        with errors_of(workload):
            self._native = _native.SteppedRun(inputs(profile, workload, [seed], **options), slot_us)
        self.catalog = Catalog(self._native.catalog)
        self.duration_us: int = self._native.duration_us
        self.ends = Ends(0, 0, 0)
        """Requests that ended in the last slot."""
        self.window = Window(self._native.window())

    def step(self, plan: Plan | None = None) -> Ends:
        """Decides the slot; without a plan all requests wait. Returns the requests that ended in it."""
        window, ends = self._native.step(plan or Plan())
        self.window, self.ends = Window(window), Ends(*ends)
        return self.ends

    def finish(self) -> dict[str, Any]:
        """Runs to the end of the last request; the fallback serves those that wait. Returns the report, as in the
        results of `simulate`.
        """
        return json.loads(self._native.finish())
