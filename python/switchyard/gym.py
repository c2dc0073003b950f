"""The simulator as an environment of Gymnasium (`pip install switchyard[gym]`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from .policy import Plan
from .stepped import Ends, Stepped
from .traces import Trace

__all__ = ["SchedulingEnv"]


class SchedulingEnv(gymnasium.Env):
    """Chooses a variant for each idle worker, slot by slot.

    Action: a number per worker. 0 waits; N runs variant N - 1 of the catalog on the oldest pending requests of
    its app, up to its largest batch. Workers that are busy or away ignore it.

    Observation: of each app the pending requests, the time of the oldest one to its deadline in ms (its SLO
    without one), and the arrivals per second; then of each worker the time in ms until it is free, and 1 if it is
    up.

    Reward: answers in time, minus late ones and requests without an answer. An episode is truncated when the
    arrivals end. `reset(seed=N)` gives the arrivals of seed N of `switchyard.simulate`.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        profile: str | os.PathLike[str],
        workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
        *,
        slot_us: int = 10_000,
        **options: Any,
    ) -> None:
        self._inputs = (profile, workload, {"slot_us": slot_us, **options})
        self._run = self._begin(1)
        catalog = self._run.catalog
        self._apps = {app["name"]: at for at, app in enumerate(catalog.apps)}
        self._slo_ms = np.array([app["slo_ms"] for app in catalog.apps])
        size = 3 * len(catalog.apps) + 2 * len(catalog.workers)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        choices = [len(catalog.variants) + 1] * len(catalog.workers)
        self.action_space = gymnasium.spaces.MultiDiscrete(choices)

    def _begin(self, seed: int) -> Stepped:
        profile, workload, options = self._inputs
        return Stepped(profile, workload, seed=seed, **options)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        self._run = self._begin(drawn)
        return self._observation(), self._info(self._run.ends)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        ends = self._run.step(self._plan(action))
        reward = float(ends.in_time - ends.late - ends.unanswered)
        is_over = self._run.window.now_us >= self._run.duration_us
        return self._observation(), reward, False, is_over, self._info(ends)

    def _plan(self, action: Any) -> Plan:
        plan, window, catalog = Plan(), self._run.window, self._run.catalog
        left = np.ones(len(window.requests.id), dtype=bool)
        workers = window.workers
        idle = (workers.free_at_us <= window.now_us) & (workers.queued == 0) & (workers.up == 1)
        for worker in np.flatnonzero(idle & (np.asarray(action) > 0)):
            variant = int(action[worker]) - 1
            app = self._apps[catalog.variants[variant]["app"]]
            rows = np.flatnonzero(left & (window.requests.app == app))
            rows = rows[: catalog.variants[variant]["batch_size_max"]]
            if len(rows):
                left[rows] = False
                plan.dispatch(int(worker), variant, window.requests.id[rows], catalog.last_exit(variant))
        return plan

    def _observation(self) -> np.ndarray:
        window, count = self._run.window, len(self._apps)
        apps = window.requests.app
        left_ms = (window.requests.deadline_us.astype("i8") - window.now_us) / 1e3
        least_ms = np.array(
            [left_ms[apps == app].min() if (apps == app).any() else self._slo_ms[app] for app in range(count)]
        )
        pending = np.bincount(apps, minlength=count)
        free_ms = np.maximum(window.workers.free_at_us.astype("i8") - window.now_us, 0) / 1e3
        rates = window.arrival_rate if len(window.arrival_rate) else np.zeros(count)
        return np.concatenate([pending, least_ms, rates, free_ms, window.workers.up]).astype(np.float32)

    def _info(self, ends: Ends) -> dict[str, Any]:
        return {"now_us": self._run.window.now_us, **ends._asdict()}
