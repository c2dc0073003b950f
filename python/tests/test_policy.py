"""Policies in Python, in the simulator."""

import subprocess
import sys
import unittest

import numpy as np

import switchyard
from switchyard.policy import Plan, PythonPolicy

PROFILE = switchyard.reference_profile()


class OldestFirst:
    """The oldest requests of one app as a batch of its most accurate variant, on each idle worker."""

    def __init__(self, catalog):
        self.catalog = catalog
        self.best = [max(catalog.variants_of(app), key=self.accuracy) for app in range(len(catalog.apps))]

    def accuracy(self, variant):
        return self.catalog.variants[variant]["exits"][-1]["accuracy"]

    def __call__(self, window):
        plan, left = Plan(), np.ones(len(window.requests.id), dtype=bool)
        idle = (window.workers.busy_until_us <= window.now_us) & (window.workers.queued == 0)
        for worker in np.flatnonzero(idle & (window.workers.up == 1)):
            if not left.any():
                break
            app = window.requests.app[left][0]
            variant = self.best[app]
            rows = np.flatnonzero(left & (window.requests.app == app))
            rows = rows[: self.catalog.variants[variant]["batch_size_max"]]
            left[rows] = False
            plan.dispatch(worker, variant, window.requests.id[rows], self.catalog.last_exit(variant))
        return plan


def simulate(make, *others, **options):
    own = make if isinstance(make, PythonPolicy) else PythonPolicy("own", make)
    return switchyard.simulate(PROFILE, "poisson:200", [own, *others], seconds=2, **options)


class Policies(unittest.TestCase):
    def test_a_policy_decides_and_repeats_its_decisions(self):
        made = simulate(OldestFirst, "edf", seeds=2)
        self.assertEqual(made.policies, ["own", "edf"])
        for report in made.data["runs"][0]["reports"]:
            self.assertEqual(report["faults"], {})
            self.assertGreater(report["ledger"]["in_time"], 300)
        again = simulate(OldestFirst, "edf", seeds=2)
        self.assertEqual(again.data["runs"], made.data["runs"])
        windows, requests = made.windows(), made.requests()
        own = windows["policy"] == "own"
        self.assertEqual(set(windows["by"][own & (windows["rescue"] == 0)]), {"own@python"})
        arrivals = made.summary()["own"]["arrivals"]["by_seed"]
        self.assertEqual((requests["policy"] == "own").sum(), sum(arrivals))

    def test_a_plan_that_breaks_a_rule_is_refused_and_counted(self):
        def wrong(catalog):
            def schedule(window):
                plan = Plan()
                plan.dispatch(99, 0, window.requests.id[:1], 0)
                return plan

            return schedule

        [run] = simulate(wrong).data["runs"]
        self.assertGreater(run["reports"][0]["faults"]["refused"], 0)
        self.assertEqual(sum(run["reports"][0]["ledger"].values()), run["reports"][0]["total"]["arrivals"])

    def test_rejections_and_wakes(self):
        def rejecting(catalog):
            def schedule(window):
                plan = Plan()
                plan.reject(window.requests.id)
                plan.wake(window.now_us + 10_000)
                return plan

            return schedule

        made = simulate(PythonPolicy("own", rejecting, on=[], every_us=50_000))
        self.assertGreater(made.data["runs"][0]["reports"][0]["ledger"]["rejected_by_policy"], 0)
        self.assertTrue(any("wake" in cause for cause in made.windows()["because"]))

    def test_columns_are_views_that_outlive_their_window(self):
        held = []

        def keeping(catalog):
            def schedule(window):
                first = not held
                columns = [getattr(window.requests, name) for name in ["id", "app", "arrival_us"]]
                columns += [window.workers.busy_until_us, window.workers.up, window.arrival_rate, window.slowdown]
                held.append((columns, [column.tolist() for column in columns]))
                if first:
                    window.requests.id[0] = 7

            return schedule

        with self.assertRaisesRegex(ValueError, "read-only"):
            simulate(keeping, threads=1)
        simulate(keeping, threads=1)
        self.assertGreater(len(held), 100)
        for columns, values in held:
            self.assertEqual([column.tolist() for column in columns], values)
            self.assertFalse(any(column.flags.owndata for column in columns))
            # One buffer for all.
            self.assertEqual(len({id(column.base) for column in columns}), 1)

    def test_the_command_prints_the_time_of_a_window(self):
        words = [sys.executable, "-m", "switchyard._window_speed", "--pending", "50", "--rounds", "1"]
        printed = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertRegex(printed, r"^\d+ pending: \d+\.\d us a window as views, \d+\.\d us as copies, ratio \d+\.\d\d$")

    def test_an_exception_ends_the_simulation(self):
        def failing(catalog):
            return lambda window: window.requests.nowhere

        with self.assertRaisesRegex(switchyard.Error, "window: has no column requests.nowhere"):
            simulate(failing, seeds=3)
        with self.assertRaises(ZeroDivisionError):
            simulate(lambda catalog: 1 / 0)
        with self.assertRaisesRegex(switchyard.Error, "own: returned str, must be a Plan or None"):
            simulate(lambda catalog: lambda window: "no plan")

    def test_numbers_that_no_plan_can_have_are_named(self):
        plan = Plan()
        with self.assertRaisesRegex(switchyard.Error, "plan: worker: -1, must be a whole number from 0"):
            plan.dispatch(-1, 0, [1], 0)
        with self.assertRaisesRegex(switchyard.Error, "plan: variant: 0.5, must be a whole number from 0"):
            plan.dispatch(0, 0.5, [1], 0)
        with self.assertRaisesRegex(switchyard.Error, r"plan: requests\[1\]: -4, must be a number of `window.requests.id`"):
            plan.dispatch(0, 0, [1, -4], 0)
        with self.assertRaisesRegex(switchyard.Error, r"plan: requests\[0\]: 1.5, must be a number of"):
            plan.reject([1.5])
        with self.assertRaisesRegex(switchyard.Error, "plan: wake: -5, must be a time"):
            plan.wake(-5)
        self.assertEqual(plan.dispatches, [])
        with self.assertRaisesRegex(switchyard.Error, "every_us: -1, must be a whole number from 1"):
            simulate(PythonPolicy("own", OldestFirst, every_us=-1))

    def test_wrong_descriptions_are_refused(self):
        with self.assertRaisesRegex(switchyard.Error, "on: .noon., must be a list of arrival, worker-idle"):
            simulate(PythonPolicy("own", OldestFirst, on=["noon"]))
        with self.assertRaisesRegex(switchyard.Error, "policy own is given twice"):
            simulate(OldestFirst, PythonPolicy("own", OldestFirst))


if __name__ == "__main__":
    unittest.main()
