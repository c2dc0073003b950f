"""Earliest deadline first, independent of WebAssembly.

`app.py` passes the contract's objects. Only their attributes are read, so the tests pass plain
objects with the same attributes.
"""

from bisect import bisect_left
from dataclasses import dataclass


@dataclass(slots=True)
class Choice:
    """One variant of an app on one worker, run to its last exit."""

    variant: int
    stages: int
    exit: int
    quality: float
    # Microseconds, of batches of 1, 2, ...
    latencies: list[int]


@dataclass(slots=True)
class Batch:
    """One batch; members are positions in the window's columns."""

    worker: int
    variant: int
    from_stage: int
    to_stage: int
    exit: int
    members: list[int]


class Scheduler:
    """Reads the catalog once and plans each window."""

    def __init__(self, catalog):
        self.variants = catalog.variants
        rows = whole_runs(catalog)
        # Per worker and app: the choices, by quality, then by latency.
        self.menus = [
            [menu(catalog, rows, worker, app) for app in range(len(catalog.apps))]
            for worker in catalog.workers
        ]

    def schedule(self, window):
        """The batches to start now; other requests stay pending."""
        requests, workers = window.requests, window.workers
        idle = [
            worker
            for worker, running in enumerate(workers.running_variant)
            if running == NOTHING
            and workers.queued[worker] == 0
            and workers.up[worker]
        ]
        # The worker that has been idle longest goes first.
        idle.sort(key=workers.busy_until.__getitem__)
        # Parts of a window without content are None.
        if not idle or requests is None:
            return []
        progress = window.progress or []
        queues = self.by_deadline(requests, progress)
        batches = []
        for worker in idle:
            # Parked requests first: only this worker has their activations.
            batch = self.resume(worker, progress) or self.start(
                worker, queues, requests.deadline, window.now
            )
            if batch:
                batches.append(batch)
        return batches

    def by_deadline(self, requests, progress):
        """Per app, the requests that have run no stage, by deadline."""
        queues = [[] for _ in self.menus[0]]
        begun = {parked.index for parked in progress}
        order = sorted(range(len(requests.id)), key=requests.deadline.__getitem__)
        for position in order:
            if position not in begun:
                queues[requests.app[position]].append(position)
        return queues

    def resume(self, worker, progress):
        """The oldest request parked on this worker, with those at the same stage."""
        here = [p for p in progress if p.worker == worker]
        if not here:
            return None
        first = min(here, key=lambda p: p.index)
        variant = self.variants[first.variant]
        together = [
            p.index
            for p in sorted(here, key=lambda p: p.index)
            if p.variant == first.variant and p.stages_run == first.stages_run
        ]
        return Batch(
            worker,
            first.variant,
            first.stages_run,
            variant.stages,
            len(variant.exits) - 1,
            together[: variant.max_batch],
        )

    def start(self, worker, queues, deadline, now):
        """The request with the earliest deadline chooses the app."""
        menus = self.menus[worker]
        able = [app for app, queue in enumerate(queues) if queue and menus[app]]
        if not able:
            return None
        app = min(able, key=lambda app: (deadline[queues[app][0]], queues[app][0]))
        queue = queues[app]
        choice, size = choose(menus[app], len(queue), deadline[queue[0]] - now)
        members, queues[app] = queue[:size], queue[size:]
        return Batch(worker, choice.variant, 0, choice.stages, choice.exit, members)


# `running-variant` of an idle worker.
NOTHING = 0xFFFFFFFF

# Stands for an unknown quality, so that such variants compare by latency.
UNKNOWN_QUALITY = 0.5


def choose(choices, waiting, slack):
    """The largest batch that meets the deadline, on the most accurate variant that meets it.

    If none does: the largest batch, on the fastest variant.
    """
    most = min(waiting, max(len(choice.latencies) for choice in choices))
    for size in range(most, 0, -1):
        for choice in choices:
            if size <= len(choice.latencies) and choice.latencies[size - 1] <= slack:
                return choice, size
    able = [choice for choice in choices if len(choice.latencies) >= most]
    return min(able, key=lambda choice: choice.latencies[most - 1]), most


def menu(catalog, rows, worker, app):
    """The variants that can serve an app on a worker."""
    choices = []
    for index, variant in enumerate(catalog.variants):
        latencies = interpolate(rows.get((worker.kind, index), {}), variant.max_batch)
        if variant.app == app and variant.memory_bytes <= worker.memory_bytes and latencies:
            last = len(variant.exits) - 1
            quality = variant.exits[last].quality
            quality = UNKNOWN_QUALITY if quality is None else quality
            choices.append(Choice(index, variant.stages, last, quality, latencies))
    choices.sort(key=lambda choice: (-choice.quality, choice.latencies[0]))
    return choices


def whole_runs(catalog):
    """Measured latencies over all stages: (kind, variant) to a dict of batch to microseconds."""
    runs = {}
    for row in catalog.profile:
        variant = catalog.variants[row.variant]
        if (row.from_stage, row.to_stage) == (0, variant.stages) and row.exit is not None:
            runs.setdefault((row.kind, row.variant), {})[row.batch] = row.latency
    return runs


def interpolate(measured, max_batch):
    """Latency by batch from 1 on, interpolated as the host does: linear, rounded up."""
    sizes, latencies = sorted(measured), []
    for batch in range(1, max_batch + 1):
        at = bisect_left(sizes, batch)
        if at == len(sizes):
            break
        high = measured[sizes[at]]
        if sizes[at] == batch or at == 0:
            latencies.append(high)
            continue
        low, span, into = measured[sizes[at - 1]], sizes[at] - sizes[at - 1], batch - sizes[at - 1]
        latencies.append(low - (low - high) * into // span)
    return latencies
