"""Environments of Gymnasium around native runs."""

from __future__ import annotations

import struct
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from . import _native
from ._native import Error
from .policy import Catalog

# Seeds of runs are drawn below this.
_SEEDS = 2**31

# Requests in time, late, without an answer; the time; the reward.
_SLOT = struct.Struct("4qd")
_SLOTS = np.dtype([("in_time", "i8"), ("late", "i8"), ("unanswered", "i8"), ("now_us", "i8"), ("reward", "f8")])


class _Native(Protocol):
    catalog: _native.Catalog
    duration_us: int
    observation_size: int

    def step(self, actions: bytes, resets: list[tuple[int, int]]) -> tuple[bytearray, bytearray]: ...


class Runs:
    """Native runs, and the spaces of their environments. `kind` is the type of an action's numbers."""

    def __init__(self, native: _Native, actions: gymnasium.Space, kind: type[np.number], count: int) -> None:
        self.native, self.actions, self.kind = native, actions, kind
        self.duration_us = native.duration_us
        self.catalog = Catalog(native.catalog)
        self.observations = gymnasium.spaces.Box(-np.inf, np.inf, (native.observation_size,), np.float32)
        self.idle = bytes(np.zeros((count, *actions.shape), kind))


class Env(gymnasium.Env):
    """One run."""

    metadata = {"render_modes": []}

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._step, self._duration_us, self._kind = runs.native.step, runs.duration_us, runs.kind
        self.observation_space, self.action_space = runs.observations, runs.actions

    @property
    def catalog(self) -> Catalog:
        """Apps, variants and workers, whose positions actions and observations have."""
        return self._runs.catalog

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(_SEEDS)) if seed is None else seed
        observation, slot = self._step(self._runs.idle, [(0, drawn)])
        in_time, late, unanswered, now_us, _ = _SLOT.unpack(slot)
        info = {"now_us": now_us, "in_time": in_time, "late": late, "unanswered": unanswered}
        return np.frombuffer(observation, np.float32), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, slot = self._step(np.asarray(action, self._kind).tobytes(), [])
        in_time, late, unanswered, now_us, reward = _SLOT.unpack(slot)
        info = {"now_us": now_us, "in_time": in_time, "late": late, "unanswered": unanswered}
        return np.frombuffer(observation, np.float32), reward, False, now_us >= self._duration_us, info


class VectorEnv(gymnasium.vector.VectorEnv):
    """Several runs that one call steps.

    Seeds and the reset after an episode are those of `gymnasium.vector.SyncVectorEnv`: the step after the last one
    of an episode ignores its action and begins another episode.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs: int, runs: Runs) -> None:
        self.num_envs, self._runs = num_envs, runs
        self.single_observation_space, self.single_action_space = runs.observations, runs.actions
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
        observations, rewards, infos = self._step(np.asarray(actions, self._runs.kind).tobytes(), resets)
        self._ended = infos["now_us"] >= self._runs.duration_us
        return observations, rewards, np.zeros(self.num_envs, dtype=bool), self._ended.copy(), infos

    def _step(self, actions: bytes, resets: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        buffer, slots = self._runs.native.step(actions, resets)
        observations = np.frombuffer(buffer, np.float32).reshape(self.num_envs, -1)
        columns = np.frombuffer(slots, _SLOTS)
        infos = {name: columns[name] for name in ["now_us", "in_time", "late", "unanswered"]}
        return observations, columns["reward"].copy(), {**infos, **{f"_{name}": self._every for name in infos}}
