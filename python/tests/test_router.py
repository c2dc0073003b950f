"""The environment with the slots of the PPO router, and weights that the policy `ppo-router` serves."""

import shutil
import tempfile
import unittest
import warnings
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

import switchyard
from switchyard.gym import RouterEnv, RouterVectorEnv
from switchyard.stepped import Stepped

PROFILE = switchyard.reference_profile()
WORKLOAD = "heart=poisson:900"
OPTIONS = {"workers": 3, "seconds": 2}

CATALOG = Stepped(PROFILE, WORKLOAD, **OPTIONS).catalog
NAMES = [worker["name"] for worker in CATALOG.workers]
HEART = [variant["name"] for variant in CATALOG.variants if variant["app"] == "heart"]
ROUTER = {"app": "heart", "instances": dict(zip(NAMES, HEART)), "slot_us": 20_000, "capacity": 12}


def env(**changed):
    return RouterEnv(PROFILE, WORKLOAD, **{**ROUTER, **OPTIONS, **changed})


def layers_of(widths, seed):
    """A network of random numbers: weights, a row per output, and biases."""
    random = np.random.default_rng(seed)
    shapes = zip(widths, widths[1:])
    return [(random.normal(0, 1 / np.sqrt(a), (b, a)).astype("f4"), random.normal(0, 0.3, b).astype("f4")) for a, b in shapes]


def outputs_of(layers, observation):
    """Tanh between the layers."""
    numbers = observation
    for at, (weights, biases) in enumerate(layers):
        numbers = weights @ numbers + biases
        if at + 1 < len(layers):
            numbers = np.tanh(numbers)
    return numbers


class Environments(unittest.TestCase):
    def test_gymnasium_makes_and_accepts_it(self):
        with warnings.catch_warnings():
            # The bounds of its observations are infinite.
            warnings.simplefilter("ignore")
            made = gymnasium.make("switchyard-router-v0", profile=PROFILE, workload=WORKLOAD, **ROUTER, **OPTIONS)
            check_env(made.unwrapped, skip_render_check=True)
            other = gymnasium.make("switchyard-v0", profile=PROFILE, workload=WORKLOAD, **OPTIONS)
            check_env(other.unwrapped, skip_render_check=True)

    def test_observations_show_the_requests_of_the_instances(self):
        made, seen = env(extended=False), []
        observation, _ = made.reset(seed=3)
        per_instance = len(observation) // 3
        self.assertEqual(per_instance, 2 * 13 + 1)
        is_over = False
        while not is_over:
            observation, reward, _, is_over, info = made.step([5.0, 0.0, -5.0])
            counts = observation.reshape(3, per_instance)[:, :13]
            np.testing.assert_array_equal(counts.sum(axis=1), [1, 1, 1])
            seen.append(counts.argmax(axis=1))
            self.assertLessEqual(reward, info["in_time"])
            self.assertGreaterEqual(reward, -info["late"] - info["unanswered"])
        loads = np.mean(seen, axis=0)
        self.assertGreater(loads[0], loads[2])

    def test_many_are_as_many_single_ones(self):
        singles, together = SyncVectorEnv([env] * 3), RouterVectorEnv(3, PROFILE, WORKLOAD, **ROUTER, **OPTIONS)
        np.testing.assert_array_equal(together.reset(seed=4)[0], singles.reset(seed=4)[0])
        random = np.random.default_rng(3)
        for _ in range(250):
            actions = random.normal(size=together.action_space.shape)
            for one, other in zip(together.step(actions)[:4], singles.step(actions)[:4]):
                np.testing.assert_array_equal(one, other)

    def test_wrong_instances_and_actions_are_named(self):
        def refused(expected, **changed):
            with self.assertRaisesRegex(switchyard.Error, expected):
                env(**changed)

        refused("app: `hart`, must be one of heart, ", app="hart")
        refused("instances: empty, must have at least one", instances={})
        refused("instances: `nowhere`, must be one of ", instances={"nowhere": HEART[0]})
        refused("instances: `lstm`, must be one of ", instances={NAMES[0]: "lstm"})
        refused("capacity: 0, must be a whole number from 1", capacity=0)
        refused("batch_max: 4000, .* has no latency of such a batch", batch_max=4_000)
        made = env()
        made.reset(seed=1)
        with self.assertRaisesRegex(switchyard.Error, "action: instance 1: NaN, must be a finite number"):
            made.step([0, np.nan, 0])
        with self.assertRaisesRegex(switchyard.Error, "layers: weights have 1 dimensions, must have 2"):
            made.weights([([1.0], [0.0])])
        with self.assertRaisesRegex(switchyard.Error, "policy.0.weight has shape"):
            made.weights(layers_of([4, 3], 1))


class Weights(unittest.TestCase):
    def test_the_policy_serves_them_as_the_environment_does(self):
        # `ppo-router` begins its slots with its first window, which it opens at time 0.
        made = env()
        size = made.observation_space.shape[0]
        layers = layers_of([size, 90, 60, 3], 5)
        observation, _ = made.reset(seed=1)
        ends, is_over = np.zeros(3, dtype=int), False
        while not is_over:
            observation, _, _, is_over, info = made.step(outputs_of(layers, observation))
            ends += [info["in_time"], info["late"], info["unanswered"]]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            bundled = PROFILE.parents[1]
            found = [place / "ppo-router.wasm" for place in [bundled / "policies", bundled / "target/policies"]]
            shutil.copy(next(file for file in found if file.is_file()), folder)
            (folder / "ppo-router/own").mkdir(parents=True)
            (folder / "ppo-router/own/policy.safetensors").write_bytes(made.weights(layers, seed=5))
            policy = switchyard.Policy("ppo-router", settings=made.settings("own/policy.safetensors"))
            served = switchyard.simulate(PROFILE, WORKLOAD, policy, policies_dir=folder, **OPTIONS)
        [report] = served.data["runs"][0]["reports"]
        self.assertEqual(report["faults"], {})
        self.assertAlmostEqual(report["total"]["in_time"], ends[0], delta=0.03 * ends.sum())
        self.assertGreater(ends[0], 500)


if __name__ == "__main__":
    unittest.main()
