"""Time to read a window as numpy arrays: as views of its buffer, and as a copy of each column."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from ._simulate import reference_profile
from .policy import Window
from .stepped import Stepped

_COLUMNS = {
    "requests": ["id", "app", "arrival_us", "deadline_us"],
    "workers": ["busy_until_us", "queued", "up"],
}

# Arrivals until the window: more than are pending in it.
_SLOT_US = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m switchyard._window_speed", description=__doc__)
    parser.add_argument("--pending", type=int, nargs="+", default=[10, 100, 1_000, 10_000], help="pending requests [default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=20, help="alternate measurements of each way [default: %(default)s]")
    args = parser.parse_args()
    for pending in args.pending:
        rows, views_us, copies_us = times(pending, args.rounds)
        print(f"{rows} pending: {views_us:.1f} us a window as views, {copies_us:.1f} us as copies, ratio {copies_us / views_us:.2f}")


def times(pending: int, rounds: int) -> tuple[int, float, float]:
    """Pending requests, and the medians of both ways in microseconds."""
    # A workload that is too much for the workers: most requests wait.
    workload = f"poisson:{pending / (_SLOT_US / 1e6)}"
    run = Stepped(reference_profile(), workload, slot_us=_SLOT_US, seconds=1, late="serve")
    run.step()
    native = run._native
    rows = len(run.window.requests.id)
    calls = max(20, 20_000 // (pending + 100))

    def timed(read: Callable[[np.ndarray], object]) -> float:
        began = time.perf_counter()
        for _ in range(calls):
            window = Window(native.window())
            for table, names in _COLUMNS.items():
                columns = getattr(window, table)
                for name in names:
                    read(getattr(columns, name))
        return (time.perf_counter() - began) / calls * 1e6

    both = [(timed(len), timed(np.copy)) for _ in range(rounds)]
    views, copies = zip(*both)
    return rows, statistics.median(views), statistics.median(copies)


if __name__ == "__main__":
    main()
