"""Runs that are decided from outside, and the environment of Gymnasium."""

import subprocess
import sys
import unittest
import warnings

import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

import switchyard
from switchyard.gym import SchedulingEnv, SchedulingVectorEnv
from switchyard.policy import Plan
from switchyard.stepped import Stepped

PROFILE = switchyard.reference_profile()


def env(**options):
    return SchedulingEnv(PROFILE, "poisson:200", seconds=2, **options)


def play(made, seed, choose):
    """The sums of rewards and ends of one episode."""
    observation, _ = made.reset(seed=seed)
    total, ends, is_over = 0.0, np.zeros(3, dtype=int), False
    while not is_over:
        observation, reward, _, is_over, info = made.step(choose(made, observation))
        total += reward
        ends += [info["in_time"], info["late"], info["unanswered"]]
    return total, ends.tolist()


def fast(made, observation):
    """For each worker the last variant of the app with the most pending requests."""
    app = int(np.argmax(observation[: len(made.catalog.apps)]))
    variant = made.catalog.variants_of(app)[-1]
    return np.full(made.action_space.nvec.shape, variant + 1)


class Slots:
    """The environment's actions and observations, in numpy on a run of slots."""

    def __init__(self, seed, **options):
        self.run = Stepped(PROFILE, "poisson:900", seed=seed, seconds=2, **options)
        self.catalog = self.run.catalog
        self.app_of = [[app["name"] for app in self.catalog.apps].index(variant["app"]) for variant in self.catalog.variants]

    def step(self, action):
        plan, window = Plan(), self.run.window
        left, workers = np.ones(len(window.requests.id), dtype=bool), window.workers
        idle = (workers.free_at_us <= window.now_us) & (workers.queued == 0) & (workers.up == 1)
        for worker in np.flatnonzero(idle & (action > 0)):
            variant = int(action[worker]) - 1
            rows = np.flatnonzero(left & (window.requests.app == self.app_of[variant]))
            rows = rows[: self.catalog.variants[variant]["batch_size_max"]]
            if len(rows):
                left[rows] = False
                plan.dispatch(worker, variant, window.requests.id[rows], self.catalog.last_exit(variant))
        return self.run.step(plan)

    def observation(self):
        window, count = self.run.window, len(self.catalog.apps)
        apps = window.requests.app
        left_ms = (window.requests.deadline_us.astype("i8") - window.now_us) / 1e3
        slo_ms = [app["slo_ms"] for app in self.catalog.apps]
        least_ms = [left_ms[apps == app].min() if (apps == app).any() else slo_ms[app] for app in range(count)]
        free_ms = np.maximum(window.workers.free_at_us.astype("i8") - window.now_us, 0) / 1e3
        rates = window.arrival_rate if len(window.arrival_rate) else np.zeros(count)
        columns = [np.bincount(apps, minlength=count), least_ms, rates, free_ms, window.workers.up]
        return np.concatenate(columns).astype(np.float32)


class Runs(unittest.TestCase):
    def test_slots_show_windows_and_ends(self):
        run = Stepped(PROFILE, "periodic:100", slot_us=50_000, seconds=1)
        self.assertEqual((run.window.now_us, run.duration_us), (0, 1_000_000))
        run.step()
        self.assertEqual(run.window.now_us, 50_000)
        waiting = len(run.window.requests.id)
        self.assertGreater(waiting, 0)
        plan = Plan()
        plan.reject(run.window.requests.id)
        self.assertEqual(run.step(plan).unanswered, waiting)
        report = run.finish()
        self.assertEqual(report["ledger"]["rejected_by_policy"], waiting)
        self.assertEqual(sum(report["ledger"].values()), report["total"]["arrivals"])
        with self.assertRaisesRegex(switchyard.Error, "the run has ended"):
            run.step()

    def test_wrong_inputs_are_named(self):
        with self.assertRaisesRegex(switchyard.Error, "slot_us: 5, must be a whole number from 100"):
            Stepped(PROFILE, "poisson:5", slot_us=5)
        with self.assertRaisesRegex(switchyard.Error, "sweep: 'load=1'"):
            Stepped(PROFILE, "poisson:5", sweep="load=1")
        with self.assertRaisesRegex(switchyard.Error, "wire_us: 800, must be 0"):
            Stepped(PROFILE, "poisson:5", wire_us=800)
        with self.assertRaisesRegex(TypeError, "workrs: unknown, must be one of seconds"):
            Stepped(PROFILE, "poisson:5", workrs=2)
        with self.assertRaisesRegex(switchyard.Error, "unknown app `nowhere`"):
            Stepped(PROFILE, "nowhere=poisson:5")


class Environments(unittest.TestCase):
    def test_gymnasium_accepts_it(self):
        with warnings.catch_warnings():
            # The bounds of its observations are infinite.
            warnings.simplefilter("ignore")
            check_env(env(), skip_render_check=True)

    def test_episodes_repeat_and_actions_matter(self):
        made = env()
        served = play(made, 3, fast)
        self.assertEqual(play(made, 3, fast), served)
        self.assertNotEqual(play(made, 4, fast), served)
        waited = play(made, 3, lambda made, _: np.zeros(made.action_space.nvec.shape, dtype=int))
        self.assertGreater(served[0], waited[0])
        self.assertGreater(served[1][0], 100)

    def test_actions_and_observations_are_those_of_the_description(self):
        made, slots = SchedulingEnv(PROFILE, "poisson:900", seconds=2), Slots(seed=5)
        observation, _ = made.reset(seed=5)
        random, is_over = np.random.default_rng(2), False
        while not is_over:
            np.testing.assert_array_equal(observation, slots.observation())
            action = random.integers(0, made.action_space.nvec)
            observation, reward, _, is_over, info = made.step(action)
            ends = slots.step(action)
            self.assertEqual((info["in_time"], info["late"], info["unanswered"]), tuple(ends))
            self.assertEqual(reward, ends.in_time - ends.late - ends.unanswered)
        self.assertEqual(info["now_us"], 2_000_000)

    def test_many_are_as_many_single_ones(self):
        singles = SyncVectorEnv([env] * 3)
        together = SchedulingVectorEnv(3, PROFILE, "poisson:200", seconds=2)
        self.assertEqual(together.action_space, singles.action_space)
        self.assertEqual(together.observation_space, singles.observation_space)
        np.testing.assert_array_equal(together.reset(seed=4)[0], singles.reset(seed=4)[0])
        random = np.random.default_rng(3)
        # Two episodes of 200 slots each, and the begin of the third.
        for _ in range(450):
            actions = random.integers(0, together.single_action_space.nvec, together.action_space.shape)
            ours, theirs = together.step(actions), singles.step(actions)
            for one, other in zip(ours[:4], theirs[:4]):
                np.testing.assert_array_equal(one, other)
            self.assertEqual(set(ours[4]), set(theirs[4]))
            for name in theirs[4]:
                np.testing.assert_array_equal(ours[4][name], theirs[4][name], name)

    def test_wrong_actions_and_numbers_are_named(self):
        made = env()
        with self.assertRaisesRegex(switchyard.Error, "step: has no run; call reset first"):
            made.step(np.zeros(made.action_space.nvec.shape))
        made.reset(seed=1)
        most = made.action_space.nvec[1] - 1
        with self.assertRaisesRegex(switchyard.Error, f"action: worker 1: 99, must be 0 to {most}"):
            made.step([0, 99, *[0] * (len(made.action_space.nvec) - 2)])
        with self.assertRaisesRegex(switchyard.Error, "action: 1 numbers, must be"):
            made.step([0])
        with self.assertRaisesRegex(switchyard.Error, "num_envs: 0, must be a whole number from 1"):
            SchedulingVectorEnv(0, PROFILE, "poisson:5")
        with self.assertRaisesRegex(switchyard.Error, "slot_us: 5, must be a whole number from 100"):
            env(slot_us=5)
        with self.assertRaisesRegex(switchyard.Error, "seed: 1 seeds, must be 2"):
            SchedulingVectorEnv(2, PROFILE, "poisson:5").reset(seed=[1])

    def test_the_command_prints_steps_per_second(self):
        words = [sys.executable, "-m", "switchyard.gym", "--seconds", "0.2", "--envs", "4"]
        printed = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        for name in ["one environment", "4 environments in one", "one router", "4 routers in one", "Stepped without plans"]:
            self.assertRegex(printed, rf"{name}: [\d,]+ steps/s of a core, [\d,]+ by the clock")


if __name__ == "__main__":
    unittest.main()
