"""The simulator as environments of Gymnasium (`pip install switchyard[gym]`).

`python -m switchyard.gym` prints their steps per second.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from . import _native
from ._native import Error
from ._simulate import inputs, whole
from .policy import Catalog
from .stepped import check
from .traces import Trace

__all__ = ["SchedulingEnv", "SchedulingVectorEnv"]

# Seeds of runs are drawn below this.
_SEEDS = 2**31

_ENVS_MAX = 65_536

# Requests in time, late, without an answer; the time.
_SLOT = struct.Struct("4q")


class _Runs:
    """The runs of an environment, and its spaces."""

    def __init__(self, count: int, profile: Any, workload: Any, slot_us: int, options: Mapping[str, Any]) -> None:
        check(slot_us, options)
        self.native = _native.Environments(inputs(profile, workload, [1], **options), slot_us, count)
        self.duration_us = self.native.duration_us
        self.catalog = catalog = Catalog(self.native.catalog)
        self.observations = gymnasium.spaces.Box(-np.inf, np.inf, (self.native.observation_size,), np.float32)
        choices = [len(catalog.variants) + 1] * len(catalog.workers)
        self.actions = gymnasium.spaces.MultiDiscrete(choices)
        self.idle = bytes(8 * len(choices) * count)


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
        self._runs = _Runs(1, profile, workload, slot_us, options)
        self._step, self._duration_us = self._runs.native.step, self._runs.duration_us
        self.observation_space, self.action_space = self._runs.observations, self._runs.actions

    @property
    def catalog(self) -> Catalog:
        """Apps, variants and workers, whose positions actions and observations have."""
        return self._runs.catalog

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(_SEEDS)) if seed is None else seed
        observation, slot = self._step(self._runs.idle, [(0, drawn)])
        in_time, late, unanswered, now_us = _SLOT.unpack(slot)
        info = {"now_us": now_us, "in_time": in_time, "late": late, "unanswered": unanswered}
        return np.frombuffer(observation, np.float32), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, slot = self._step(np.asarray(action, np.int64).tobytes(), [])
        in_time, late, unanswered, now_us = _SLOT.unpack(slot)
        info = {"now_us": now_us, "in_time": in_time, "late": late, "unanswered": unanswered}
        reward = float(in_time - late - unanswered)
        return np.frombuffer(observation, np.float32), reward, False, now_us >= self._duration_us, info


class SchedulingVectorEnv(gymnasium.vector.VectorEnv):
    """`num_envs` environments as `SchedulingEnv`, of one profile and workload, which one call steps.

    Seeds and the reset after an episode are those of `gymnasium.vector.SyncVectorEnv`: the step after the last one
    of an episode ignores its action and begins another episode.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int,
        profile: str | os.PathLike[str],
        workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
        *,
        slot_us: int = 10_000,
        **options: Any,
    ) -> None:
        self.num_envs = whole("num_envs", num_envs, 1, _ENVS_MAX)
        self._runs = _Runs(num_envs, profile, workload, slot_us, options)
        self.single_observation_space, self.single_action_space = self._runs.observations, self._runs.actions
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._randoms = [seeding.np_random(None)[0] for _ in range(num_envs)]
        self._ended = np.zeros(num_envs, dtype=bool)
        # Gymnasium's sign that an info is of every environment.
        self._every = np.ones(num_envs, dtype=bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        seeds = [seed + at for at in range(self.num_envs)] if isinstance(seed, int) else seed or [None] * self.num_envs
        if len(seeds) != self.num_envs:
            raise Error(f"seed: {len(seeds)} seeds, must be {self.num_envs}")
        self._ended[:] = False
        observations, _, infos = self._step(self._runs.idle, [(at, self._seed(at, own)) for at, own in enumerate(seeds)])
        return observations, infos

    def _seed(self, at: int, seed: int | None = None) -> int:
        """The seed of the next episode."""
        if seed is None:
            return int(self._randoms[at].integers(_SEEDS))
        self._randoms[at] = seeding.np_random(seed)[0]
        return seed

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        resets = [(int(at), self._seed(at)) for at in np.flatnonzero(self._ended)] if self._ended.any() else []
        observations, rewards, infos = self._step(np.asarray(actions, np.int64).tobytes(), resets)
        self._ended = infos["now_us"] >= self._runs.duration_us
        return observations, rewards, np.zeros(self.num_envs, dtype=bool), self._ended.copy(), infos

    def _step(self, actions: bytes, resets: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        buffer, slots = self._runs.native.step(actions, resets)
        observations = np.frombuffer(buffer, np.float32).reshape(self.num_envs, -1)
        in_time, late, unanswered, now_us = np.frombuffer(slots, np.int64).reshape(self.num_envs, 4).T
        rewards = (in_time - late - unanswered).astype(np.float64)
        infos = {"now_us": now_us, "in_time": in_time, "late": late, "unanswered": unanswered}
        return observations, rewards, {**infos, **{f"_{name}": self._every for name in infos}}


def _main() -> None:
    from ._speed import main

    main()


if __name__ == "__main__":
    _main()
