"""Plots of results with matplotlib, which only they need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ._columns import Columns
from ._native import Error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._result import Result

_ANSWERED = ["in_time", "late", "short_circuit", "short_circuit_late"]

_INTERVAL = "95 % confidence interval"

# Of a worker's row.
_BAR_HEIGHT = 0.8


def metric(result: Result, name: str, app: str | None, ax: Axes | None) -> Axes:
    """Means with intervals, over policies or along the sweep."""
    policies, points = result.policies, result.points
    summaries = [result.summary(point, app) for point in points]
    known = dict.fromkeys(metric for summary in summaries for metrics in summary.values() for metric in metrics)
    _one_of("metric", name, known)
    ax = _axes(ax)

    def column(policy: str, field: str) -> np.ndarray:
        found = [summary[policy].get(name, {}).get(field) for summary in summaries]
        return np.array([np.nan if value is None else value for value in found], dtype="f8")

    marks: dict[str, Any] = {"marker": "o", "capsize": 4}
    if len(points) > 1:
        for policy in policies:
            ax.errorbar(points, column(policy, "mean"), column(policy, "half_width"), label=policy, **marks)
        ax.legend()
    else:
        means, widths = (np.concatenate([column(policy, field) for policy in policies]) for field in ["mean", "half_width"])
        ax.errorbar(policies, means, widths, linestyle="none", **marks)
        ax.margins(x=0.2)
    ax.set_ylabel(name if app is None else f"{name} of {app}")
    if len(result.seeds) > 1:
        ax.set_title(f"{len(result.seeds)} seeds, {_INTERVAL}", fontsize="medium")
    return ax


def latency(result: Result, policy: str | None, point: str, app: str | None, ax: Axes | None) -> Axes:
    """Cumulative shares of answered requests."""
    policies = result.policies if policy is None else [_one_of("policy", policy, result.policies)]
    requests = result.requests()
    chosen = _rows(requests, "point", point)
    if app is not None:
        chosen &= _rows(requests, "app", _one_of("app", app, requests.names("app")))
    names = requests.names("outcome")
    answered = np.isin(requests.codes("outcome"), [names.index(name) for name in _ANSWERED])
    ax = _axes(ax)
    for name in policies:
        own = chosen & _rows(requests, "policy", name)
        times_ms = np.sort(requests["latency_us"][own & answered]) / 1e3
        # Requests without an answer keep a line below 1.
        ax.step(times_ms, np.arange(1, len(times_ms) + 1) / max(int(own.sum()), 1), where="post", label=name)
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("latency (ms)")
    ax.set_ylabel("share of requests answered" if app is None else f"share of requests of {app} answered")
    ax.legend()
    return ax


def timeline(
    result: Result, policy: str | None, point: str, seed: int | None, seconds: tuple[float, float], ax: Axes | None
) -> Axes:
    """Batches by worker, and windows below them."""
    policy = result.policies[0] if policy is None else _one_of("policy", policy, result.policies)
    seed = result.seeds[0] if seed is None else _one_of("seed", seed, result.seeds)
    begin, end = seconds
    if not 0 <= begin < end:
        raise Error(f"seconds: {seconds!r}, must be two ascending numbers from 0 on")

    def part(table: Columns, times_us: np.ndarray, lengths_us: np.ndarray | int = 0) -> np.ndarray:
        own = _rows(table, "point", point) & _rows(table, "policy", policy) & (table["seed"] == seed)
        return own & (times_us < end * 1e6) & (times_us + lengths_us >= begin * 1e6)

    batches, windows = result.batches(), result.windows()
    began_us, took_us = batches["start_us"], batches["load_us"] + batches["service_us"]
    rows = part(batches, began_us, took_us)
    workers, variants = batches.names("worker"), batches.names("variant")
    ax = _axes(ax)
    for color, variant in enumerate(np.unique(batches.codes("variant")[rows])):
        label = variants[variant]
        for at in range(len(workers)):
            own = rows & (batches.codes("variant") == variant) & (batches.codes("worker") == at)
            bars = np.column_stack([began_us[own], took_us[own]]) / 1e6
            if len(bars):
                ax.broken_barh(bars, (at - _BAR_HEIGHT / 2, _BAR_HEIGHT), color=f"C{color % 10}", label=label)
                # One entry in the legend.
                label = "_"
    decided = windows["at_us"][part(windows, windows["at_us"])] / 1e6
    ax.plot(decided, np.full(len(decided), -1.0), "|", color="0.4")
    ax.set_yticks(range(-1, len(workers)), ["windows", *workers])
    ax.set_xlim(begin, end)
    ax.set_xlabel("time (s)")
    ax.set_title(f"{policy}, seed {seed}", fontsize="medium")
    if rows.any():
        ax.legend(fontsize="small")
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"plots need matplotlib ({error}): pip install switchyard[plot]") from error
    return pyplot.subplots(layout="constrained")[1]


def _rows(table: Columns, column: str, name: str) -> np.ndarray:
    names = table.names(column)
    return table.codes(column) == (names.index(name) if name in names else -2)


def _one_of(field: str, value: Any, known: Iterable[Any]) -> Any:
    if value not in known:
        raise Error(f"{field}: {value!r}, must be one of {', '.join(map(repr, known))}")
    return value
