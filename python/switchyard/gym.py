"""The simulator as environments of Gymnasium (`pip install switchyard[gym]`).

    env = gymnasium.make("switchyard-v0", profile=profile, workload="poisson:200")

`switchyard-v0` is `SchedulingEnv`, `switchyard-router-v0` is `RouterEnv`. `python -m switchyard.gym` prints their steps
per second.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import gymnasium
import numpy as np

from . import _native
from ._environments import Env, Runs, VectorEnv
from ._native import Error
from ._simulate import errors_of, inputs, whole
from .policy import Catalog
from .stepped import check
from .traces import Trace

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["RouterEnv", "RouterOptions", "RouterVectorEnv", "SchedulingEnv", "SchedulingVectorEnv"]

_ENVS_MAX = 65_536


def _scheduling(count: int, profile: Any, workload: Any, slot_us: int, options: Mapping[str, Any]) -> Runs:
    check(slot_us, options)
    with errors_of(workload):
        native = _native.Environments(inputs(profile, workload, [1], **options), slot_us, count)
    catalog = Catalog(native.catalog)
    choices = [len(catalog.variants) + 1] * len(catalog.workers)
    return Runs(native, gymnasium.spaces.MultiDiscrete(choices), np.int64, count)


class SchedulingEnv(Env):
    """Chooses a variant for each idle worker, slot by slot.

    Action: a number per worker. 0 waits; N runs variant N - 1 of the catalog on the oldest pending requests of
    its app, up to its largest batch. Workers that are busy or away ignore it.

    Observation: of each app the pending requests, the time of the oldest one to its deadline in ms (its SLO
    without one), and the arrivals per second; then of each worker the time in ms until it is free, and 1 if it is
    up.

    Reward: answers in time, minus late ones and requests without an answer. An episode is truncated when the
    arrivals end. `reset(seed=N)` gives the arrivals of seed N of `switchyard.simulate`.
    """

    def __init__(
        self,
        profile: str | os.PathLike[str],
        workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
        *,
        slot_us: int = 10_000,
        **options: Any,
    ) -> None:
        super().__init__(_scheduling(1, profile, workload, slot_us, options))


class SchedulingVectorEnv(VectorEnv):
    """`num_envs` environments as `SchedulingEnv`, of one profile and workload, which one call steps."""

    def __init__(
        self,
        num_envs: int,
        profile: str | os.PathLike[str],
        workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
        *,
        slot_us: int = 10_000,
        **options: Any,
    ) -> None:
        count = whole("num_envs", num_envs, 1, _ENVS_MAX)
        super().__init__(count, _scheduling(count, profile, workload, slot_us, options))


class RouterOptions(TypedDict, total=False):
    """The parts of a router, which takes the options of `simulate` too."""

    app: str
    """Needed."""
    instances: Mapping[str, str]
    """Names of workers, each with the variant that runs there. Needed."""
    slot_us: int
    """By default 25,000."""
    capacity: int
    """Requests that fit an instance, with those in service; by default 31."""
    batch_max: int
    """By default 1."""
    extended: bool
    """Show also the changes of the instances and recent arrivals; by default."""


class _Router:
    """The instances of a router and its slots."""

    def __init__(
        self,
        count: int,
        profile: Any,
        workload: Any,
        *,
        app: str,
        instances: Mapping[str, str],
        slot_us: int = 25_000,
        capacity: int = 31,
        batch_max: int = 1,
        extended: bool = True,
        **options: Any,
    ) -> None:
        check(slot_us, options)
        self.instances, self.batch_max = dict(instances), whole("batch_max", batch_max, 1, 4_096)
        router = {
            "app": app,
            "instances": list(self.instances.items()),
            "extended": bool(extended),
            "capacity": whole("capacity", capacity, 1, 4_096),
            "batch_max": self.batch_max,
            # Arrivals per second that an observation shows as 1.
            "rate_scale": 1_000.0,
        }
        with errors_of(workload):
            self.native = _native.Routers(inputs(profile, workload, [1], **options), slot_us, count, router)
        self.workload = workload if isinstance(workload, str) else type(workload).__name__
        # Numbers beyond these bounds are allowed: only their differences matter.
        actions = gymnasium.spaces.Box(-10.0, 10.0, (len(self.instances),), np.float32)
        self.runs = Runs(self.native, actions, np.float32, count)

    def weights(self, layers: Iterable[tuple[Any, Any]], seed: int, command: str) -> bytes:
        plain = []
        for weights, biases in layers:
            # As of `torch.nn.Linear`: a row per output.
            by_output = np.asarray(weights, dtype="f4")
            if by_output.ndim != 2:
                raise Error(f"layers: weights have {by_output.ndim} dimensions, must have 2: outputs, inputs")
            plain.append((by_output.T.ravel().tolist(), np.asarray(biases, dtype="f4").ravel().tolist()))
        return self.native.weights(plain, self.workload, seed, command)

    def settings(self, weights: str) -> dict[str, Any]:
        batches = {variant: [1, self.batch_max] for variant in self.instances.values()}
        return {"weights": weights, "instances": self.instances, "batches": batches}


class RouterEnv(Env):
    """Chooses the shares of an app's arrivals, slot by slot, as the policy `ppo-router` does.

    Takes `RouterOptions` and those of `simulate`. `workload` should be of the app alone.

    Action: a number per instance, whose softmax are the shares. Observation: that of `ppo-router`. Reward: accuracies
    of answers in time, minus late ones and requests without an answer.
    """

    def __init__(
        self,
        profile: str | os.PathLike[str],
        workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
        **options: Unpack[RouterOptions],
    ) -> None:
        self._router = _Router(1, profile, workload, **options)
        super().__init__(self._router.runs)

    def weights(self, layers: Sequence[tuple[Any, Any]], seed: int = 0, command: str = "switchyard.gym.RouterEnv") -> bytes:
        """The contents of a file of weights for `ppo-router`, of layers with tanh between them: weights, a row per
        output, and biases.
        """
        return self._router.weights(layers, seed, command)

    def settings(self, weights: str) -> dict[str, Any]:
        """The settings of `ppo-router` for these instances; `weights` is a file in the policy's folder."""
        return self._router.settings(weights)


class RouterVectorEnv(VectorEnv):
    """`num_envs` environments as `RouterEnv`, which one call steps."""

    def __init__(
        self,
        num_envs: int,
        profile: str | os.PathLike[str],
        workload: str | os.PathLike[str] | Mapping[str, Any] | Trace,
        **options: Unpack[RouterOptions],
    ) -> None:
        count = whole("num_envs", num_envs, 1, _ENVS_MAX)
        super().__init__(count, _Router(count, profile, workload, **options).runs)


for _name, _env, _vector_env in [
    ("switchyard-v0", SchedulingEnv, SchedulingVectorEnv),
    ("switchyard-router-v0", RouterEnv, RouterVectorEnv),
]:
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=_env, vector_entry_point=_vector_env)


def _main() -> None:
    from ._speed import main

    main()


if __name__ == "__main__":
    _main()
