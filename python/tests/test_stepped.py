"""Runs that are decided from outside, and the environment of Gymnasium."""

import unittest
import warnings

import numpy as np
from gymnasium.utils.env_checker import check_env

import switchyard
from switchyard.gym import SchedulingEnv
from switchyard.policy import Plan
from switchyard.stepped import Stepped

PROFILE = switchyard.reference_profile()


def env(**options):
    return SchedulingEnv(PROFILE, "poisson:200", seconds=2, **options)


def play(made, seed, choose):
    """The sums of rewards and ends of one episode."""
    made.reset(seed=seed)
    total, ends, is_over = 0.0, np.zeros(3, dtype=int), False
    while not is_over:
        _, reward, _, is_over, info = made.step(choose(made))
        total += reward
        ends += [info["in_time"], info["late"], info["unanswered"]]
    return total, ends.tolist()


def fast(made):
    """For each worker the last variant of the app with the most pending requests."""
    observed = made._observation()
    app = int(np.argmax(observed[: len(made._apps)]))
    variant = made._run.catalog.variants_of(app)[-1]
    return np.full(made.action_space.nvec.shape, variant + 1)


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
        with self.assertRaisesRegex(switchyard.Error, "slot_us: 5, must be at least 100"):
            Stepped(PROFILE, "poisson:5", slot_us=5)
        with self.assertRaisesRegex(switchyard.Error, "sweep: 'load=1'"):
            Stepped(PROFILE, "poisson:5", sweep="load=1")
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
        waited = play(made, 3, lambda made: np.zeros(made.action_space.nvec.shape, dtype=int))
        self.assertGreater(served[0], waited[0])
        self.assertGreater(served[1][0], 100)


if __name__ == "__main__":
    unittest.main()
