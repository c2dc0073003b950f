"""Catalog and window of the contract, as `switchyard.policy` reads them from the native module."""

import json
from bisect import bisect_left


class Error(ValueError):
    """An input cannot be used."""


class Catalog:
    """Apps, variants and workers, and the latencies of whole requests."""

    def __init__(self, contract):
        self._contract = contract
        self._points = {}
        for row in contract.profile:
            key = (row.kind, row.variant, row.from_stage, row.to_stage, row.exit)
            self._points.setdefault(key, {})[row.batch] = row.latency

    def json(self):
        contract = self._contract
        apps = [
            {"name": app.name, "slo_ms": app.slo / 1e6 * 1e3, "classes": len(app.classes)} for app in contract.apps
        ]
        variants = [
            {
                "name": variant.name,
                "app": contract.apps[variant.app].name,
                "batch_size_max": variant.max_batch,
                "memory_bytes": variant.memory_bytes,
                "exits": [{"name": exit.name, "accuracy": exit.quality} for exit in variant.exits],
            }
            for variant in contract.variants
        ]
        workers = [{"name": worker.name, "kind": contract.kinds[worker.kind]} for worker in contract.workers]
        return json.dumps({"apps": apps, "variants": variants, "workers": workers})

    def to_stage(self, variant, exit):
        """The stages that an exit of a variant needs; 0 without such an exit, for the host to refuse."""
        if variant >= len(self._contract.variants):
            return 0
        exits = self._contract.variants[variant].exits
        return exits[exit].after_stage if exit < len(exits) else 0

    def latency_us(self, worker, variant, exit, batch):
        if worker >= len(self._contract.workers) or not self.to_stage(variant, exit):
            return None
        kind = self._contract.workers[worker].kind
        return self._sum(kind, variant, 0, self.to_stage(variant, exit), exit, batch)

    def _sum(self, kind, variant, begin, end, exit, batch):
        """A range without a row of its own is the sum of its stages; the last one carries the exit."""
        points = self._points.get((kind, variant, begin, end, exit))
        if points is not None:
            return _interpolated(points, batch)
        if end <= begin + 1:
            return None
        parts = (
            self._sum(kind, variant, begin, end - 1, None, batch),
            self._sum(kind, variant, end - 1, end, exit, batch),
        )
        return None if None in parts else sum(parts)


def _interpolated(points, batch):
    """Linear between profiled batches, rounded up, as the host does."""
    sizes = sorted(points)
    at = bisect_left(sizes, batch)
    if at == len(sizes):
        return None
    high = points[sizes[at]]
    if at == 0 or sizes[at] == batch:
        return high
    low, span, into = points[sizes[at - 1]], sizes[at] - sizes[at - 1], batch - sizes[at - 1]
    return low - (low - high) * into // span


# Types, and fields of the contract.
_COLUMNS = {
    "requests": {
        "id": ("u8", "id"),
        "app": ("u4", "app"),
        "arrival_us": ("u8", "arrival"),
        "deadline_us": ("u8", "deadline"),
        "priority": ("u4", "priority"),
        "min_accuracy": ("f4", "min_quality"),
    },
    "workers": {
        "busy_until_us": ("u8", "busy_until"),
        "free_at_us": ("u8", "free_at"),
        "running_variant": ("u4", "running_variant"),
        "queued": ("u4", "queued"),
        "free_memory": ("u8", "free_memory"),
    },
}


class Window:
    """The columns of one window."""

    def __init__(self, contract):
        self.id, self.now_us = contract.id, contract.now
        self._contract = contract

    def column(self, table, name):
        contract = self._contract
        if (table, name) == ("apps", "arrival_rate"):
            return "f8", list(contract.arrival_rate)
        if (table, name) == ("workers", "up"):
            # The contract counts incarnations.
            return "u1", [1 if up else 0 for up in contract.workers.up]
        if table == "residents" and name in ("worker", "variant"):
            return "u4", [getattr(held, name) for held in contract.residents or []]
        if name not in _COLUMNS.get(table, {}):
            raise Error(f"window: has no column {table}.{name}")
        kind, field = _COLUMNS[table][name]
        rows = getattr(contract, table)
        # Parts of a window without content are absent.
        return kind, [] if rows is None else list(getattr(rows, field))
