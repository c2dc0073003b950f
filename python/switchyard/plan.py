"""Plans: the decisions of one window."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ._native import Error

__all__ = ["Dispatch", "Lane", "Plan", "Route"]

# Past the end of any queue: the end.
_LAST = 2**32 - 1


@dataclass(frozen=True)
class Dispatch:
    """A batch for a worker; ids and indices as in the window and the catalog."""

    worker: int
    variant: int
    requests: Sequence[int]
    exit: int | None
    place: int
    from_stage: int = 0
    to_stage: int | None = None


@dataclass(frozen=True)
class Lane:
    """A part of a route: a worker, a variant and the exit that answers. Batches start with `min_batch` to
    `max_batch` requests; `capacity` requests may wait, and one more is rejected.
    """

    worker: int
    variant: int
    exit: int
    weight: float
    max_batch: int
    capacity: int
    min_batch: int = 1

    def __post_init__(self) -> None:
        weight = float(self.weight)
        if not 0 <= weight < math.inf:
            raise Error(f"lane: weight: {weight}, must be a number of at least 0")
        object.__setattr__(self, "weight", weight)
        for field in ["worker", "variant", "exit", "min_batch", "max_batch", "capacity"]:
            object.__setattr__(self, field, _index(field, getattr(self, field), "lane"))


@dataclass(frozen=True)
class Route:
    """The lanes of an app's arrivals."""

    app: int
    lanes: Sequence[Lane]


class Plan:
    """The decisions of one window. Requests that it does not name stay pending.

    A `reason` is a code with numbers, such as `due-first slack_us=1200`, or free text; recordings keep it.
    """

    def __init__(self) -> None:
        self.dispatches: list[Dispatch] = []
        self.revokes: list[int] = []
        self.rejects: list[int] = []
        self.answers: list[int] = []
        self.routes: list[Route] = []
        self.wake_us: int | None = None
        self._reasons: tuple[list[tuple[int, str]], ...] = ([], [], [])

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """Positions and reasons; positions go on from dispatches to rejects, and from those to answers."""
        dispatched, rejected, answered = self._reasons
        rejects = len(self.dispatches)
        answers = rejects + len(self.rejects)
        made = list(dispatched)
        made += [(rejects + at, text) for at, text in rejected]
        return made + [(answers + at, text) for at, text in answered]

    def dispatch(
        self,
        worker: int,
        variant: int,
        requests: Iterable[int],
        exit: int | None,
        place: int = _LAST,
        *,
        from_stage: int = 0,
        to_stage: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Queues a batch on a worker, which an exit of the variant answers; `place` 0 is the head of the queue.

        `from_stage` is the number of stages that the requests have run (`window.progress`). Without an exit they
        are parked after `to_stage` stages and become pending again.
        """
        if exit is None and to_stage is None:
            raise Error("plan: exit: None, needs to_stage, the number of stages after which the requests are parked")
        self._because(0, len(self.dispatches), 1, reason)
        self.dispatches.append(
            Dispatch(
                _index("worker", worker),
                _index("variant", variant),
                _ids("requests", requests),
                None if exit is None else _index("exit", exit),
                _index("place", place),
                _index("from_stage", from_stage),
                None if to_stage is None else _index("to_stage", to_stage),
            )
        )

    def reject(self, requests: Iterable[int], reason: str | None = None) -> None:
        """Refuses requests."""
        ids = _ids("requests", requests)
        self._because(1, len(self.rejects), len(ids), reason)
        self.rejects.extend(ids)

    def answer(self, requests: Iterable[int], reason: str | None = None) -> None:
        """Answers requests from their evidence, which `window.evidence` shows."""
        ids = _ids("requests", requests)
        self._because(2, len(self.answers), len(ids), reason)
        self.answers.extend(ids)

    def revoke(self, batches: Iterable[int]) -> None:
        """Takes batches back that wait in a queue, by `window.placed.batch`. Their requests are pending again, and
        this plan may dispatch them.
        """
        self.revokes.extend(_ids("batches", batches, "window.placed.batch"))

    def route(self, app: int, lanes: Iterable[Lane]) -> None:
        """Sends the arrivals of an app to these lanes from now on, without a window; without lanes they are pending
        again. Weights are scaled to sum to 1.
        """
        lanes = list(lanes)
        for at, lane in enumerate(lanes):
            if not isinstance(lane, Lane):
                raise Error(f"plan: lanes[{at}]: {lane!r}, must be a Lane")
        # The sum of Python's versions differs in its last bit.
        total = math.fsum(lane.weight for lane in lanes)
        if lanes and not 0 < total < math.inf:
            raise Error(f"plan: lanes: weights sum to {total}, must be a positive number")
        scaled = [replace(lane, weight=lane.weight / total) for lane in lanes]
        self.routes.append(Route(_index("app", app), scaled))

    def wake(self, at_us: int) -> None:
        """Opens a window at this time."""
        if not 0 <= at_us < 2**64:
            raise Error(f"plan: wake: {at_us}, must be a time in microseconds from 0 on")
        self.wake_us = int(at_us)

    def _because(self, kind: int, first: int, count: int, reason: str | None) -> None:
        if reason is None:
            return
        if not isinstance(reason, str):
            raise Error(f"plan: reason: {reason!r}, must be a text")
        self._reasons[kind].extend((first + at, reason) for at in range(count))


def _index(field: str, value: int, part: str = "plan") -> int:
    """A position; whether it is one of the catalog is checked with the plan."""
    number = int(value)
    if number != value or not 0 <= number <= _LAST:
        raise Error(f"{part}: {field}: {value}, must be a whole number from 0 to {_LAST}")
    return number


def _ids(field: str, values: Iterable[int], column: str = "window.requests.id") -> list[int]:
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    ids = [int(value) for value in listed]
    for row, (number, given) in enumerate(zip(ids, listed)):
        if number != given or not 0 <= number < 2**64:
            raise Error(f"plan: {field}[{row}]: {given}, must be a number of `{column}`")
    return ids
