"""Catalog and window of the contract, as `switchyard.policy` reads them from the native module."""

import json
from bisect import bisect_left
from operator import index

from wit_world.exports.scheduling import Capabilities, Causes


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
        return json.dumps(
            {
                "apps": [_app(app) for app in contract.apps],
                "variants": [_variant(variant, contract.apps[variant.app].name) for variant in contract.variants],
                "workers": [_worker(worker, contract.kinds[worker.kind]) for worker in contract.workers],
                "kinds": list(contract.kinds),
                "percentile": contract.percentile,
            }
        )

    def profile_json(self):
        fields = ["kind", "variant", "from_stage", "to_stage", "exit", "batch", "energy_uj"]
        rows = self._contract.profile
        return json.dumps([{**_fields(row, fields), "latency_us": row.latency} for row in rows])

    def loads_json(self):
        return json.dumps([{"kind": row.kind, "variant": row.variant, "latency_us": row.latency} for row in self._contract.loads])

    def to_stage(self, variant, exit):
        """The stages that an exit of a variant needs; 0 without such an exit, for the host to refuse."""
        if variant >= len(self._contract.variants):
            return 0
        exits = self._contract.variants[variant].exits
        return exits[exit].after_stage if exit < len(exits) else 0

    def latency_us(self, worker, variant, from_stage, to_stage, exit, batch):
        # Elements of arrays would overflow in sums and differences.
        worker, variant, from_stage, to_stage, batch = map(index, (worker, variant, from_stage, to_stage, batch))
        exit = None if exit is None else index(exit)
        if worker >= len(self._contract.workers):
            return None
        return self._sum(self._contract.workers[worker].kind, variant, from_stage, to_stage, exit, batch)

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


def _fields(record, names):
    return {name: getattr(record, name) for name in names}


def _app(app):
    model = app.sneakpeek
    return {
        "name": app.name,
        "task": app.task.name.lower(),
        "classes": list(app.classes),
        "slo_ms": app.slo / 1e6 * 1e3,
        "penalty": app.penalty.name.lower(),
        "prior": list(app.prior),
        "frequencies": list(app.frequencies),
        "sneakpeek": model and {**_fields(model, ["neighbours", "accuracy"]), "recall": list(model.recall)},
        "drops_late": app.drops_late,
    }


def _variant(variant, app):
    exits = [
        {"name": exit.name, "after_stage": exit.after_stage, "accuracy": exit.quality, "recall": list(exit.recall)}
        for exit in variant.exits
    ]
    fields = _fields(variant, ["name", "stages", "memory_bytes"])
    return {**fields, "app": app, "batch_size_max": variant.max_batch, "exits": exits}


def _worker(worker, kind):
    can = [
        (Capabilities.STAGE_RANGES, "stage-ranges"),
        (Capabilities.EXITS, "exits"),
        (Capabilities.PARKING, "parking"),
    ]
    return {
        **_fields(worker, ["name", "memory_bytes", "queue_max", "parked_max"]),
        "kind": kind,
        "can": [name for capability, name in can if capability in worker.can],
        "transfer_us": worker.transfer,
    }


_CAUSES = {
    "periodic": Causes.PERIODIC,
    "arrival": Causes.ARRIVAL,
    "worker-idle": Causes.WORKER_IDLE,
    "completion": Causes.COMPLETION,
    "evidence": Causes.EVIDENCE,
    "wake": Causes.WAKE,
    "changed": Causes.CHANGED,
    "workers": Causes.WORKERS,
}

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
    "progress": {
        "worker": ("u4", "worker"),
        "index": ("u4", "index"),
        "variant": ("u4", "variant"),
        "stages_run": ("u4", "stages_run"),
    },
    "workers": {
        "busy_until_us": ("u8", "busy_until"),
        "free_at_us": ("u8", "free_at"),
        "running_since_us": ("u8", "running_since"),
        "running_variant": ("u4", "running_variant"),
        "queued": ("u4", "queued"),
        "parked": ("u4", "parked"),
        "free_memory": ("u8", "free_memory"),
        "incarnation": ("u4", "up"),
    },
    "evidence": {"index": ("u4", "index"), "counts": ("u4", "counts")},
    "placed": {
        "id": ("u8", "id"),
        "app": ("u4", "app"),
        "arrival_us": ("u8", "arrival"),
        "deadline_us": ("u8", "deadline"),
        "worker": ("u4", "worker"),
        "variant": ("u4", "variant"),
        "batch": ("u8", "batch"),
        "state": ("u1", "state"),
    },
    "completions": {
        "id": ("u8", "id"),
        "app": ("u4", "app"),
        "outcome": ("u1", "outcome"),
        "variant": ("u4", "variant"),
        "exit": ("u4", "exit"),
        "latency_us": ("u8", "latency"),
    },
    "residents": {"worker": ("u4", "worker"), "variant": ("u4", "variant")},
    "apps": {"arrival_rate": ("f8", "arrival_rate")},
    "kinds": {"slowdown": ("f8", "slowdown")},
}

# Lists of records, instead of columns.
_ROWS = ("progress", "residents")


class Window:
    """The columns of one window."""

    def __init__(self, contract):
        self.id, self.now_us = contract.id, contract.now
        self._contract = contract

    @property
    def because(self):
        return [name for name, cause in _CAUSES.items() if cause in self._contract.because]

    def column(self, table, name):
        """The arguments of `numpy.frombuffer`."""
        contract = self._contract
        if (table, name) == ("workers", "up"):
            # The contract counts incarnations.
            return [1 if up else 0 for up in contract.workers.up], "u1"
        if (table, name) == ("requests", "cost"):
            count = 0 if contract.requests is None else len(contract.requests.id)
            return [1.0] * count if contract.cost is None else list(contract.cost), "f4"
        if name not in _COLUMNS.get(table, {}):
            raise Error(f"window: has no column {table}.{name}")
        kind, field = _COLUMNS[table][name]
        # Parts of a window without content are absent.
        if table in ("apps", "kinds"):
            return list(getattr(contract, field) or []), kind
        rows = getattr(contract, table)
        if table in _ROWS:
            return [getattr(row, field) for row in rows or []], kind
        values = [] if rows is None else list(getattr(rows, field))
        return [value.value for value in values] if field == "outcome" else values, kind
