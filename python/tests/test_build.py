"""Policies in Python as components. The program is in $SWITCHYARD_PROGRAM, componentize-py next to this Python."""

import datetime
import math
import tempfile
import unittest
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import switchyard
from switchyard import _sources
from switchyard.policy import Catalog, Plan, PythonPolicy, Window

PROFILE = switchyard.reference_profile()

# Requests with less slack are rejected.
HOPELESS_US = 3_000
WEIGHTS = {"late": [1.0, 2.5], "early": (0, True, None)}


@dataclass
class Choice:
    variant: int
    latencies_us: list


def by_accuracy(catalog: Catalog, app: int) -> list:
    """The variants of an app, the most accurate one first."""
    variants = catalog.variants_of(app)
    return sorted(variants, key=lambda at: (-catalog.variants[at]["exits"][-1]["accuracy"], at))


class Base:
    def idle(self, window):
        workers = window.workers
        return np.flatnonzero((workers.busy_until_us <= window.now_us) & (workers.queued == 0) & (workers.up == 1))


class Urgent(Base):
    """On each idle worker the app with the earliest deadline, and the most accurate variant that is in time."""

    def __init__(self, catalog):
        self.catalog = catalog
        self.menus = []
        for app in range(len(catalog.apps)):
            self.menus.append([Choice(at, self.latencies(at)) for at in by_accuracy(catalog, app)])

    def latencies(self, variant):
        largest = self.catalog.variants[variant]["batch_size_max"]
        times = [self.catalog.latency_us(0, variant, batch) for batch in range(1, largest + 1)]
        return [time for time in times if time is not None]

    def choose(self, app, waiting, slack_us):
        for choice in self.menus[app]:
            size = bisect_left(choice.latencies_us, slack_us + 1)
            if size:
                return choice.variant, min(size, waiting)
        return self.menus[app][-1].variant, 1

    def __call__(self, window: Window):
        requests, plan = window.requests, Plan()
        if not len(requests.id):
            return None
        slack_us = requests.deadline_us.astype("i8") - window.now_us
        hopeless = slack_us < HOPELESS_US * WEIGHTS["late"][0]
        plan.reject(requests.id[hopeless])
        order = np.argsort(slack_us, kind="stable")
        left = ~hopeless
        for worker in self.idle(window):
            rows = order[left[order]]
            if not len(rows):
                break
            app = requests.app[rows[0]]
            same = rows[requests.app[rows] == app]
            variant, size = self.choose(app, len(same), int(slack_us[same[0]]))
            chosen = same[:size]
            left[chosen] = False
            plan.dispatch(worker, variant, requests.id[chosen], self.catalog.last_exit(variant))
        rate = window.arrival_rate.sum()
        if left.any() and rate > 0 and not math.isnan(rate):
            plan.wake(window.now_us + int(np.clip(1e6 / rate, 500, 20_000)))
        return plan


class Decisions(unittest.TestCase):
    def test_a_component_decides_as_its_source(self):
        policy = PythonPolicy("urgent", Urgent, on=["arrival", "worker-idle", "completion"], every_us=30_000)
        with tempfile.TemporaryDirectory() as folder:
            file = policy.build(Path(folder) / "urgent.wasm")
            built = switchyard.Policy(str(file), name="built")
            options = {"seeds": 2, "seconds": 2, "sweep": "deadline=0.05,1"}
            made = switchyard.simulate(PROFILE, "gamma:500,0.5", [policy, built], **options)
            requests, windows = made.requests(), made.windows()
        own, theirs = (requests["policy"] == name for name in ["urgent", "built"])
        self.assertGreater(own.sum(), 1_500)
        for column in requests:
            if column != "policy":
                np.testing.assert_array_equal(requests[column][own], requests[column][theirs], column)
        own, theirs = (windows["policy"] == name for name in ["urgent", "built"])
        for column in ["at_us", "because", "pending", "dispatched"]:
            np.testing.assert_array_equal(windows[column][own], windows[column][theirs], column)
        reports = [report for run in made.data["runs"] for report in run["reports"]]
        self.assertEqual([report["faults"] for report in reports], [{}] * len(reports))
        outcomes = set(requests["outcome"])
        self.assertLessEqual({"in_time", "rejected_by_policy"}, outcomes)


def local():
    def make(catalog):
        return lambda window: None

    return make


class Sources(unittest.TestCase):
    def test_a_module_has_all_that_a_policy_uses(self):
        text = _sources.module_of(Urgent, "urgent")
        scope = {}
        exec(compile(text, "built_policy", "exec"), scope)
        for name in ["Urgent", "Base", "Choice", "by_accuracy", "HOPELESS_US", "WEIGHTS", "np", "math", "bisect_left"]:
            self.assertIn(name, scope)
        self.assertEqual(scope["WEIGHTS"], WEIGHTS)
        self.assertNotIn("unittest", text)

    def refused(self, expected, make):
        with self.assertRaises(switchyard.Error) as caught:
            PythonPolicy("own", make).build("own.wasm")
        self.assertIn(expected, str(caught.exception))
        return str(caught.exception)

    def test_other_policies_are_refused_with_file_line_reason_and_way_out(self):
        def clock(catalog):
            return datetime.datetime.now()

        clock.__qualname__ = "clock"
        line = clock.__code__.co_firstlineno + 1
        text = self.refused("module `datetime` is not available in a component; use only numpy", clock)
        self.assertIn(f"{__file__}:{line}: clock: ", text)
        self.refused("numpy.linalg is not available in a component; use abs, ", algebra)
        self.refused("arrays have no `reshape` in a component; use another function, or lists", reshaping)
        self.refused('argsort orders equal elements at will; use argsort(kind="stable")', unstable)
        text = self.refused("`@` is not available in a component; use (one * other).sum()", multiplying)
        self.assertIn(f"{__file__}:{multiplying.__code__.co_firstlineno + 1}: multiplying: ", text)
        self.refused("`@` is not available", multiplying_in_place)
        self.refused("`open` is not available in a component; decide by catalog and window alone", reading)
        self.refused("`PROFILE` is a PosixPath; use functions, classes, numbers", with_path)
        self.refused("`missing` is not defined", undefined)
        self.refused("module `random` is not available", importing)
        self.refused("is defined inside of a function or by lambda; define it by def or class at the left margin", local())
        self.refused("is defined inside of a function or by lambda", lambda catalog: None)
        self.refused("is a partial, must be a function or class", __import__("functools").partial(algebra, 1))

    def test_names_and_files_are_checked(self):
        with self.assertRaisesRegex(switchyard.Error, "name: 'My Policy', must be at most 64 lower-case"):
            PythonPolicy("My Policy", Urgent).build()
        with self.assertRaisesRegex(switchyard.Error, "out: .*own.txt, must end in .wasm"):
            PythonPolicy("own", Urgent).build("own.txt")
        with self.assertRaisesRegex(switchyard.Error, "on: .noon., must be a list of arrival"):
            PythonPolicy("own", Urgent, on=["noon"]).build()


def algebra(catalog):
    return lambda window: np.linalg.norm(window.arrival_rate)


def reshaping(catalog):
    return lambda window: window.requests.id.reshape(-1, 1)


def unstable(catalog):
    return lambda window: window.requests.id.argsort()


def multiplying(catalog):
    return lambda window: window.requests.cost @ window.requests.cost


def multiplying_in_place(catalog):
    catalog @= catalog


def reading(catalog):
    return open("plan.json")


def with_path(catalog):
    return PROFILE.exists()


def undefined(catalog):
    return missing  # noqa: F821


def importing(catalog):
    import random

    return random.random


if __name__ == "__main__":
    unittest.main()
