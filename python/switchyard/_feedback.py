"""Why requests missed their deadlines, as text for a person or a language model."""

from __future__ import annotations

import numpy as np

from ._result import Result

# Most lines about late requests, and about faults.
_LINES = 6

_IN_TIME = ["in_time", "short_circuit"]


def totals(name: str, result: Result) -> str:
    """One line: the requests that missed their deadlines, and the windows that the policy failed."""
    [run] = result.data["runs"]
    arrivals = sum(report["total"]["arrivals"] for report in run["reports"])
    late = arrivals - sum(report["total"]["in_time"] for report in run["reports"])
    line = f"{name}: {late} of {arrivals} requests missed their deadlines"
    kinds: dict[str, int] = {}
    for report in run["reports"]:
        for kind, count in report["faults"].items():
            kinds[kind] = kinds.get(kind, 0) + count
    if any(kinds.values()):
        line += "; windows that the policy failed and the fallback served: "
        line += ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    if any(report["taken_off"] for report in run["reports"]):
        line += "; too many, the policy was taken off"
    return line


def details(result: Result) -> list[str]:
    """The failed windows by reason, then the late requests by app and cause, most of them first."""
    requests, windows = result.requests(), result.windows()
    lines = []
    failed = np.flatnonzero(windows.codes("fault") >= 0)
    reasons = windows["fault"][failed]
    counts = sorted(((int((reasons == reason).sum()), reason) for reason in set(reasons)), reverse=True)
    for count, reason in counts[:_LINES]:
        first = failed[np.flatnonzero(reasons == reason)[0]]
        lines.append(f"  fault in {_windows(count)}, first in {_place(windows, first)}: {reason}")

    late = np.flatnonzero(~np.isin(requests["outcome"], _IN_TIME))
    ended_us = requests["arrival_us"] + requests["latency_us"]
    waited_us = requests["started_us"] - requests["arrival_us"].astype("i8")
    rows = _window_rows(requests, windows, ended_us)
    groups: dict[tuple[str, str], list[int]] = {}
    apps, outcomes, started = requests["app"], requests["outcome"], requests["started_us"]
    for at in late:
        served_us = int(requests["latency_us"][at]) - int(waited_us[at])
        if windows.codes("fault")[rows[at]] >= 0 and requests["window"][at] >= 0:
            cause = "answered late: the policy failed their window"
        elif started[at] < 0:
            cause = f"not answered ({outcomes[at]})"
        elif waited_us[at] >= served_us:
            cause = "answered late: most of the time before their batch began"
        else:
            cause = "answered late: most of the time in their batch"
        groups.setdefault((apps[at], cause), []).append(at)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    for (app, cause), members in ordered[:_LINES]:
        own, counts = np.unique(rows[members], return_counts=True)
        worst = own[int(np.argmax(counts))]
        took_ms = float(np.median(requests["latency_us"][members])) / 1e3
        lines.append(
            f"  {app}: {len(members)} {cause}; median {took_ms:.1f} ms after their arrival; "
            f"most ({counts.max()}) in {_place(windows, worst)}"
        )
    return lines


def _window_rows(requests, windows, ended_us) -> np.ndarray:
    """The window of each request: that which decided it, otherwise the last one before its end."""
    rows = np.zeros(requests.rows, dtype="i8")
    for seed in np.unique(requests["seed"]):
        own, listed = np.flatnonzero(requests["seed"] == seed), np.flatnonzero(windows["seed"] == seed)
        if not len(listed):
            continue
        ids, at_us = windows["window"][listed].astype("i8"), windows["at_us"][listed]
        by_id = np.searchsorted(ids, requests["window"][own])
        by_time = np.maximum(np.searchsorted(at_us, ended_us[own], side="right") - 1, 0)
        decided = requests["window"][own] >= 0
        rows[own] = listed[np.where(decided, np.minimum(by_id, len(listed) - 1), by_time)]
    return rows


def _place(windows, row: int) -> str:
    at_ms, pending = int(windows["at_us"][row]) / 1e3, int(windows["pending"][row])
    return f"window {int(windows['window'][row])} of seed {int(windows['seed'][row])} at {at_ms:.1f} ms with {pending} pending"


def _windows(count: int) -> str:
    return "1 window" if count == 1 else f"{count} windows"
