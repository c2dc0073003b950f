"""A policy that uses the whole plan: stages, parking, answers, revokes, routes, reasons."""

import numpy as np

from switchyard.policy import OUTCOMES, Lane, Plan

# Windows between a route and its end.
TURN = 40

# Every batch with a multiple of this number is taken back if it waits.
SOME = 4


class Staged:
    """Parks some batches after their first stage and resumes them, queues others, and takes late ones back."""

    def __init__(self, catalog):
        self.catalog = catalog
        self.windows = 0
        self.ended = [0] * len(OUTCOMES)
        self.deepest = []
        for app in range(len(catalog.apps)):
            menu = catalog.variants_of(app)
            self.deepest.append(max(menu, key=lambda at: (catalog.variants[at]["stages"], -at)))

    def lanes(self, app):
        variant = self.deepest[app]
        size = min(4, self.catalog.variants[variant]["batch_size_max"])
        last = self.catalog.last_exit(variant)
        return [Lane(at, variant, last, 1 + 0.37 * at, size, 16) for at in range(len(self.catalog.workers))]

    def __call__(self, window):
        plan, requests = Plan(), window.requests
        self.windows += 1
        for outcome in window.completions.outcome.tolist():
            self.ended[outcome] += 1
        if self.windows % TURN == 1:
            plan.route(0, self.lanes(0) if self.windows % (2 * TURN) == 1 else [])
        self.revoke(window, plan)
        left = np.ones(len(requests.id), dtype=bool)
        self.answer(window, plan, left)
        parked = np.zeros(len(requests.id), dtype=bool)
        parked[window.progress.index] = True
        workers = window.workers
        idle = (workers.busy_until_us <= window.now_us) & (workers.queued == 0) & (workers.incarnation > 0)
        for worker in np.flatnonzero(idle):
            if not self.resume(window, plan, left, int(worker)):
                self.begin(window, plan, left, parked, int(worker))
        return plan

    def revoke(self, window, plan):
        """Takes back queued batches with a late request, and some others, and refuses their requests."""
        placed = window.placed
        late = (placed.deadline_us < window.now_us) | (placed.batch % SOME == 0)
        batches = np.unique(placed.batch[(placed.state == 1) & late])
        if len(batches):
            plan.revoke(batches)
            plan.reject(placed.id[np.isin(placed.batch, batches)], reason="revoked")

    def answer(self, window, plan, left):
        """Answers every second request whose evidence has a majority."""
        counts, begin = window.evidence.counts.tolist(), 0
        for row in window.evidence.index.tolist():
            app = self.catalog.apps[window.requests.app[row]]
            own = counts[begin : begin + len(app["classes"])]
            begin += len(app["classes"])
            if app["sneakpeek"] and 2 * max(own) > sum(own) and int(window.requests.id[row]) % 2:
                plan.answer([window.requests.id[row]], reason=f"majority votes={max(own)}")
                left[row] = False

    def resume(self, window, plan, left, worker):
        """Goes on with the oldest requests that are parked here."""
        progress = window.progress
        own = np.flatnonzero((progress.worker == worker) & left[progress.index])
        if not len(own):
            return False
        variant, run = int(progress.variant[own[0]]), int(progress.stages_run[own[0]])
        same = own[(progress.variant[own] == variant) & (progress.stages_run[own] == run)]
        rows = progress.index[same][: self.catalog.variants[variant]["batch_size_max"]]
        left[rows] = False
        ids = window.requests.id[rows]
        plan.dispatch(worker, variant, ids, self.catalog.last_exit(variant), from_stage=run, reason="resume")
        return True

    def begin(self, window, plan, left, parked, worker):
        """Runs the oldest requests, those with time to spare by one stage; the next ones wait behind them."""
        catalog, requests = self.catalog, window.requests
        fresh = np.flatnonzero(left & ~parked)
        if not len(fresh):
            return
        app = int(requests.app[fresh[0]])
        variant = self.deepest[app]
        size = min(2, catalog.variants[variant]["batch_size_max"])
        same = fresh[requests.app[fresh] == app]
        first, second = same[:size], same[size : 2 * size]
        left[first] = False
        slack_us = int(requests.deadline_us[first[0]]) - window.now_us
        rest_us = catalog.latency_us(worker, variant, len(first), from_stage=1)
        stage_us = catalog.parked_latency_us(worker, variant, len(first), 1)
        if "parking" in catalog.workers[worker]["can"] and stage_us and rest_us and slack_us > stage_us + rest_us:
            plan.dispatch(worker, variant, requests.id[first], None, to_stage=1, reason=f"park slack_us={slack_us}")
        else:
            plan.dispatch(worker, variant, requests.id[first], catalog.last_exit(variant))
        if len(second) and catalog.workers[worker]["queue_max"] > 0:
            left[second] = False
            plan.dispatch(worker, variant, requests.id[second], 0)
