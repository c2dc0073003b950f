"""Steps per second of the environments, on one thread."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ._environments import Env, VectorEnv
from ._simulate import reference_profile
from .gym import RouterEnv, RouterVectorEnv, SchedulingEnv, SchedulingVectorEnv
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
    router = {**options, **_router(profile, workload)}
    return {
        "one environment": _one(SchedulingEnv(profile, workload, **options), seconds),
        f"{envs} environments in one": _many(SchedulingVectorEnv(envs, profile, workload, **options), seconds),
        "one router": _one(RouterEnv(profile, workload, **router), seconds),
        f"{envs} routers in one": _many(RouterVectorEnv(envs, profile, workload, **router), seconds),
        "Stepped without plans": _slots(lambda: Stepped(profile, workload, **options), seconds),
    }


def _router(profile: Path, workload: str) -> dict[str, Any]:
    """Two instances of the first app."""
    catalog = Stepped(profile, workload, workers=2, seconds=1).catalog
    workers = [worker["name"] for worker in catalog.workers]
    variants = [catalog.variants[at]["name"] for at in catalog.variants_of(0)]
    return {"app": catalog.apps[0]["name"], "instances": dict(zip(workers, variants)), "workers": 2}


def _timed(steps: Callable[[], int], seconds: float) -> Rate:
    """Calls a function that returns the number of its steps, for this long."""
    began, core_began, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() < began + seconds:
        count += steps()
    return Rate(count / (time.process_time() - core_began), count / (time.perf_counter() - began))


def _one(env: Env, seconds: float) -> Rate:
    env.action_space.seed(1)
    actions = [env.action_space.sample() for _ in range(_DRAWN)]
    env.reset(seed=1)

    def steps() -> int:
        for action in actions:
            if env.step(action)[3]:
                env.reset()
        return len(actions)

    return _timed(steps, seconds)


def _many(env: VectorEnv, seconds: float) -> Rate:
    env.action_space.seed(1)
    actions = [env.action_space.sample() for _ in range(_DRAWN // env.num_envs + 1)]
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
