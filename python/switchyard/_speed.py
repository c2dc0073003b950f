"""Steps per second of the environments, on one thread."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ._simulate import reference_profile
from .gym import SchedulingEnv, SchedulingVectorEnv
from .policy import Plan
from .stepped import Stepped

# Actions are drawn before they are timed.
_DRAWN = 997


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m switchyard.gym", description=__doc__)
    parser.add_argument("--workload", default="poisson:200", help="as of `switchyard simulate` [default: %(default)s]")
    parser.add_argument("--slot-us", type=int, default=10_000, help="length of a slot [default: %(default)s]")
    parser.add_argument("--envs", type=int, default=16, help="environments of the vectorised one [default: %(default)s]")
    parser.add_argument("--seconds", type=float, default=3.0, help="time of each measurement [default: %(default)s]")
    args = parser.parse_args()
    for name, rate in rates(args.workload, args.slot_us, args.envs, args.seconds).items():
        print(f"{name}: {rate.of_core:,.0f} steps/s of a core, {rate.of_clock:,.0f} by the clock")


class Rate(NamedTuple):
    """Steps per second."""

    of_core: float
    """Of the processor's time: other processes do not matter."""
    of_clock: float


def rates(workload: str, slot_us: int, envs: int, seconds: float) -> dict[str, Rate]:
    """Steps per second, resets included, with random actions."""
    profile, options = reference_profile(), {"slot_us": slot_us, "seconds": 60}
    return {
        "one environment": _one(SchedulingEnv(profile, workload, **options), seconds),
        f"{envs} environments in one": _many(SchedulingVectorEnv(envs, profile, workload, **options), seconds),
        "Stepped without plans": _slots(lambda: Stepped(profile, workload, **options), seconds),
    }


def _timed(steps: Callable[[], int], seconds: float) -> Rate:
    """Calls a function that returns the number of its steps, for this long."""
    began, core_began, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() < began + seconds:
        count += steps()
    return Rate(count / (time.process_time() - core_began), count / (time.perf_counter() - began))


def _one(env: SchedulingEnv, seconds: float) -> Rate:
    random = np.random.default_rng(1)
    actions = [random.integers(0, env.action_space.nvec) for _ in range(_DRAWN)]
    env.reset(seed=1)

    def steps() -> int:
        for action in actions:
            if env.step(action)[3]:
                env.reset()
        return len(actions)

    return _timed(steps, seconds)


def _many(env: SchedulingVectorEnv, seconds: float) -> Rate:
    random = np.random.default_rng(1)
    shape = env.action_space.shape
    actions = [random.integers(0, env.single_action_space.nvec, shape) for _ in range(_DRAWN // env.num_envs + 1)]
    env.reset(seed=1)

    def steps() -> int:
        for action in actions:
            env.step(action)
        return len(actions) * env.num_envs

    return _timed(steps, seconds)


def _slots(begin: Callable[[], Stepped], seconds: float) -> Rate:
    run, plan = begin(), Plan()

    def steps() -> int:
        nonlocal run
        for _ in range(_DRAWN):
            run.step(plan)
            if run.window.now_us >= run.duration_us:
                run = begin()
        return _DRAWN

    return _timed(steps, seconds)
