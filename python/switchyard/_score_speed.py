"""Seconds of a call of `switchyard.evaluate.Evaluator.score`, with and without compiling."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import NamedTuple

from ._simulate import whole
from .evaluate import Evaluator

POLICIES = ["fcfs", "mael", "sneakpeek", "yardmaster"]

SECONDS_MAX = 2.0
"""Longest call that does not compile."""


class CallTime(NamedTuple):
    """Medians of several calls."""

    first: float
    """By the clock, of the first call, which compiles."""
    seconds: float
    """By the clock, of the others."""
    core_seconds: float
    """The processor's time, of the others: other processes do not matter."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m switchyard.evaluate",
        description=__doc__,
        epilog=f"Exit codes: 0 done, 1 a call that does not compile takes longer than {SECONDS_MAX} s, and of a core too.",
    )
    parser.add_argument("policies", nargs="*", default=POLICIES, help="names or files *.wasm [default: %(default)s]")
    parser.add_argument("--calls", type=int, default=5, help="calls of each policy after the first one [default: %(default)s]")
    args = parser.parse_args()
    slow = []
    for policy in args.policies:
        took = call_time(policy, args.calls)
        print(
            f"{policy}: {took.seconds:.2f} s a call, {took.core_seconds:.2f} s of a core; "
            f"{took.first:.2f} s the first one, which compiles",
            flush=True,
        )
        # Other processes make a call take longer by the clock.
        if min(took.seconds, took.core_seconds) > SECONDS_MAX:
            slow.append(policy)
    if slow:
        sys.exit(f"{', '.join(slow)}: longer than {SECONDS_MAX} s a call")


def call_time(policy: str, calls: int) -> CallTime:
    """Times calls of one evaluator on its training traces."""
    evaluator = Evaluator()
    first, _ = _timed(evaluator, policy)
    others = [_timed(evaluator, policy) for _ in range(whole("calls", calls, 1, 1_000))]
    seconds, core_seconds = (statistics.median(column) for column in zip(*others))
    return CallTime(first, seconds, core_seconds)


def _timed(evaluator: Evaluator, policy: str) -> tuple[float, float]:
    began, core_began = time.perf_counter(), time.process_time()
    evaluator.score(policy)
    return time.perf_counter() - began, time.process_time() - core_began
