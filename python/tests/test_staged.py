"""The whole plan from Python, as a function and as a component. The program is in $SWITCHYARD_PROGRAM."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
from staged import Staged

import switchyard
from switchyard.policy import Catalog, Lane, Plan, PythonPolicy

PROFILE = switchyard.reference_profile()

ON = ["arrival", "worker-idle", "completion", "evidence"]
WANTS = ["evidence", "completions", "placed", "residents"]

TABLES = ["requests", "batches", "windows"]

POLICY = PythonPolicy("staged", Staged, on=ON, wants=WANTS, every_us=50_000, when_empty=True)


def columns_of(table, policy):
    own = table["policy"] == policy
    return {name: table[name][own] for name in table if name not in ("policy", "by")}


class Decisions(unittest.TestCase):
    def same(self, one, other):
        self.assertEqual(list(one), list(other))
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], name)

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.built = switchyard.Policy(str(POLICY.build(Path(folder.name) / "staged.wasm")), name="built")
        # Compiled once.
        cls.compiled = switchyard.CompiledPolicies()

    def simulate(self, workload, **options):
        policies = [POLICY, self.built]
        made = switchyard.simulate(PROFILE, workload, policies, compiled=self.compiled, keep=TABLES, **options)
        return made, (made.requests(), made.batches(), made.windows())

    def test_a_component_decides_as_its_source(self):
        made, tables = self.simulate("gamma:2500,0.4", seconds=0.3, sweep="deadline=0.1,1")
        reports = [report for run in made.data["runs"] for report in run["reports"]]
        self.assertEqual([report["faults"] for report in reports], [{}] * len(reports))
        for table in tables:
            self.same(columns_of(table, "staged"), columns_of(table, "built"))
        requests, batches, windows = (columns_of(table, "staged") for table in tables)
        # Every part of the plan was used.
        self.assertGreater((batches["from_stage"] > 0).sum(), 10)
        self.assertGreater((batches["exit"] == "").sum(), 10)
        for part in ["dispatches", "revokes", "rejects", "answers"]:
            self.assertGreater(windows[part].sum(), 0, part)
        self.assertLessEqual({"in_time", "short_circuit", "rejected_by_policy"}, set(requests["outcome"]))

    def test_a_long_queue_needs_a_longer_window_budget(self):
        # About 40 requests are pending.
        options = {"seconds": 0.3, "sweep": "deadline=1"}
        made, tables = self.simulate("gamma:6000,0.4", window_budget_ms=50, **options)
        reports = [report for run in made.data["runs"] for report in run["reports"]]
        self.assertEqual([report["faults"] for report in reports], [{}] * len(reports))
        for table in tables:
            self.same(columns_of(table, "staged"), columns_of(table, "built"))
        made, (_, _, windows) = self.simulate("gamma:6000,0.4", **options)
        own, built = (run["reports"][0]["faults"] for run in made.data["runs"])
        self.assertEqual(own, {})
        self.assertEqual(list(built), ["overrun"])
        self.assertIn("overrun: schedule was cut at its budget of 5ms", set(windows["fault"]))

    def test_policies_see_the_fields_of_the_contract(self):
        catalogs, windows = [], []

        def make(catalog):
            catalogs.append(catalog)
            staged = Staged(catalog)

            def schedule(window):
                windows.append(window)
                return staged(window)

            return schedule

        policy = PythonPolicy("seen", make, on=ON, wants=WANTS)
        switchyard.simulate(PROFILE, "gamma:2500,0.4", policy, seconds=0.5, threads=1)
        self.check_catalog(catalogs[0])
        self.assertIn("arrival", {cause for window in windows for cause in window.because})
        for name, column in {"evidence": "counts", "placed": "id", "completions": "id", "residents": "worker", "progress": "index"}.items():
            self.assertTrue(any(len(getattr(getattr(window, name), column)) for window in windows), name)
        # In lanes, which a route has made.
        self.assertTrue(any((window.placed.state == 0).any() for window in windows))
        for window in windows:
            workers = window.workers
            self.assertTrue((workers.busy_until_us >= window.now_us).all())
            self.assertTrue((workers.free_at_us >= workers.busy_until_us).all())
            np.testing.assert_array_equal(workers.incarnation > 0, workers.up == 1)
            np.testing.assert_array_equal(window.requests.cost, np.ones(len(window.requests.id)))
        with self.assertRaisesRegex(AttributeError, "window: has no nowhere"):
            _ = windows[0].nowhere

    def check_catalog(self, catalog: Catalog):
        for variant in catalog.variants:
            self.assertEqual(variant["exits"][-1]["after_stage"], variant["stages"])
        self.assertEqual(catalog.apps[0]["task"], "classify")
        self.assertEqual(len(catalog.apps[0]["classes"]), len(catalog.apps[0]["prior"]))
        row = next(row for row in catalog.profile if row["exit"] is None and row["batch"] == 1)
        self.assertEqual(catalog.kinds[row["kind"]], catalog.workers[0]["kind"])
        latency_us = catalog.parked_latency_us(0, row["variant"], 1, row["to_stage"], row["from_stage"])
        self.assertEqual(latency_us, row["latency_us"])
        self.assertTrue(all(row["latency_us"] > 0 for row in catalog.loads))
        self.assertIsNone(catalog.latency_us(0, 0, 1, exit=99))


class Plans(unittest.TestCase):
    def refused(self, expected, call, *args, **options):
        with self.assertRaises(switchyard.Error) as caught:
            call(*args, **options)
        self.assertIn(expected, str(caught.exception))

    def test_numbers_that_no_plan_can_have_are_named(self):
        plan = Plan()
        self.refused("plan: exit: None, needs to_stage", plan.dispatch, 0, 0, [1], None)
        self.refused("plan: from_stage: -1, must be a whole number", plan.dispatch, 0, 0, [1], 0, from_stage=-1)
        self.refused("plan: reason: 7, must be a text", plan.reject, [1], reason=7)
        self.refused("plan: batches[0]: -1, must be a number of `window.placed.batch`", plan.revoke, [-1])
        self.refused("lane: weight: nan, must be a number of at least 0", Lane, 0, 0, 0, float("nan"), 1, 1)
        self.refused("lane: max_batch: -1, must be a whole number", Lane, 0, 0, 0, 1.0, -1, 1)
        self.refused("plan: lanes: weights sum to 0.0, must be a positive number", plan.route, 0, [Lane(0, 0, 0, 0, 1, 1)])
        self.refused("plan: lanes[0]: 7, must be a Lane", plan.route, 0, [7])
        self.refused("wants: 'weather', must be a list of evidence, completions", PythonPolicy, "own", Staged, wants=["weather"])
        self.refused("wants: 'placed', must be a list of", PythonPolicy, "own", Staged, wants="placed")
        self.assertEqual((plan.dispatches, plan.rejects, plan.reasons, plan.routes), ([], [], [], []))

    def test_reasons_go_on_from_list_to_list(self):
        plan = Plan()
        plan.answer([7], reason="known")
        plan.reject([4, 5], reason="late")
        plan.dispatch(0, 0, [1], 0, reason="due-first")
        plan.dispatch(0, 0, [2], 0)
        self.assertEqual(plan.reasons, [(0, "due-first"), (2, "late"), (3, "late"), (4, "known")])

    def test_weights_are_scaled(self):
        plan = Plan()
        plan.route(1, [Lane(0, 0, 0, 1, 4, 8), Lane(1, 0, 0, 3, 4, 8)])
        self.assertEqual([lane.weight for lane in plan.routes[0].lanes], [0.25, 0.75])

    def test_stages_that_a_variant_lacks_are_refused(self):
        def parking(catalog):
            def schedule(window):
                plan = Plan()
                plan.dispatch(0, 0, window.requests.id[:1], None, to_stage=99)
                return plan

            return schedule

        [run] = switchyard.simulate(PROFILE, "poisson:200", PythonPolicy("own", parking), seconds=1).data["runs"]
        self.assertGreater(run["reports"][0]["faults"]["refused"], 0)


if __name__ == "__main__":
    unittest.main()
