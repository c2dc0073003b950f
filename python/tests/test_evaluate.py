"""Scores for policy search: training and held-out traces apart, feedback, and OpenEvolve's interface."""

import itertools
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import switchyard
from switchyard._score_speed import SECONDS_MAX, call_time
from switchyard.evaluate import HELD_OUT, TRAIN, Case, Evaluator
from switchyard.policy import Plan, PythonPolicy
from switchyard.traces import Trace

SHORT = {"seconds": 0.2}
CASES = [Case("calm", "poisson:500", options=SHORT), Case("heavy", "poisson:9000", options={"seconds": 0.05})]


def evaluator(**options):
    return Evaluator(CASES, ["poisson:700"], held_out_seeds=[7, 8], **options)


def refusing(catalog):
    def schedule(window):
        plan = Plan()
        plan.reject(window.requests.id)
        return plan

    return schedule


class Refusing:
    """As `refusing`, at the left margin."""

    def __init__(self, catalog):
        self.catalog = catalog

    def __call__(self, window):
        plan = Plan()
        plan.reject(window.requests.id)
        return plan


def impossible(catalog):
    def schedule(window):
        plan = Plan()
        plan.dispatch(99, 0, window.requests.id[:1], 0)
        return plan

    return schedule


class Scores(unittest.TestCase):
    def test_a_score_is_the_mean_utility_and_repeats(self):
        own = evaluator()
        score = own.score("fcfs")
        self.assertEqual(score, own.score("fcfs"))
        self.assertEqual(list(score.by_case), ["calm", "heavy"])
        self.assertAlmostEqual(score.value, sum(score.by_case.values()) / 2)
        self.assertAlmostEqual(score.value, sum(score.by_seed) / 2)
        profile = switchyard.reference_profile()
        calm = switchyard.simulate(profile, "poisson:500", "fcfs", seeds=[1, 2], seconds=0.2)
        self.assertEqual(score.by_case["calm"], calm.summary()["fcfs"]["utility"]["mean"])
        self.assertEqual(own.held_out_calls, 0)

    def test_the_held_out_score_is_another_call_without_feedback(self):
        own = evaluator()
        score = own.held_out_score("fcfs")
        self.assertTrue(score.is_held_out)
        self.assertEqual((score.feedback, own.held_out_calls, len(score.by_seed)), ("", 1, 2))
        with self.assertRaisesRegex(switchyard.Error, "must be a score of the same call"):
            score.minus(own.score("fcfs"))
        difference, half_width = score.minus(score)
        self.assertEqual((difference, half_width), (0.0, 0.0))

    def test_default_traces_do_not_overlap(self):
        workloads = [case.workload for case in [*TRAIN, *HELD_OUT]]
        self.assertEqual(len(set(workloads)), len(workloads))

    def test_settings_matter(self):
        own = evaluator()
        slow = switchyard.Policy("fcfs", settings={"variants": {"images": "resnet56", "voice": "lstm"}})
        self.assertNotEqual(own.score(slow).value, own.score("fcfs").value)

    def test_wrong_inputs_are_refused(self):
        with self.assertRaisesRegex(switchyard.Error, "policy `fcfz`"):
            evaluator().score("fcfz")
        with self.assertRaisesRegex(switchyard.Error, "policy: 7, must be a name"):
            evaluator().score(7)
        with self.assertRaisesRegex(switchyard.Error, "train: empty, must have at least one case"):
            Evaluator([])
        with self.assertRaisesRegex(switchyard.Error, "held_out: poisson:1, poisson:1: names must differ"):
            Evaluator(held_out=["poisson:1", "poisson:1"])

    def test_wrong_cases_are_no_scores(self):
        wrong = {
            "arrival process: `poison` is unknown": Case("typo", "poison:400"),
            "nowhere.json": Case("profile", "poisson:400", profile="nowhere.json"),
            "'nowhere', must be one of": Case("app", Trace([0, 9], ["nowhere"] * 2)),
            "must be a whole number from 1": Case("workers", "poisson:400", options={"workers": 0}),
            "'second'": Case("option", "poisson:400", options={"second": 1}),
        }
        failing = [refusing, lambda catalog: 1 / 0]
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program.py"
            for text, case in wrong.items():
                own = Evaluator([CASES[0], case], [case])
                for score, policy in itertools.product([own.held_out_score, Evaluator([case]).score], failing):
                    with self.subTest(text), self.assertRaisesRegex((switchyard.Error, TypeError), text):
                        score(policy)
                program.write_text("def make(catalog):\n    return lambda window: None\n")
                with self.subTest(text), self.assertRaisesRegex((switchyard.Error, TypeError), text):
                    own.evaluate(program)


class Times(unittest.TestCase):
    def test_the_command_prints_seconds_of_a_call(self):
        words = [sys.executable, "-m", "switchyard.evaluate", "fcfs", "--calls", "1"]
        printed = subprocess.run(words, stdout=subprocess.PIPE, text=True).stdout
        self.assertRegex(printed, r"fcfs: \d+\.\d\d s a call, \d+\.\d\d s of a core; \d+\.\d\d s the first one, which compiles")

    def test_a_call_without_compiling_takes_seconds_at_most(self):
        # Of the processor: a busy machine makes a call take longer by the clock.
        for policy in ["yardmaster", "sneakpeek"]:
            self.assertLess(call_time(policy, 2).core_seconds, 2 * SECONDS_MAX, policy)

    def test_a_component_of_python_takes_no_longer(self):
        with tempfile.TemporaryDirectory() as folder:
            file = PythonPolicy("refusing", Refusing).build(Path(folder) / "refusing.wasm")
            self.assertLess(call_time(str(file), 2).core_seconds, 2 * SECONDS_MAX)


class Feedback(unittest.TestCase):
    def test_late_requests_have_app_cause_window_and_backlog(self):
        feedback = evaluator().score("fcfs").feedback
        self.assertRegex(feedback, r"^calm: \d+ of \d+ requests missed their deadlines")
        self.assertRegex(feedback, r"\n  \w+: \d+ (not answered|answered late).*; most \(\d+\) in window \d+ of seed \d at \d+\.\d ms with \d+ pending")

    def test_rejected_requests_are_named(self):
        score = evaluator().score(refusing)
        # The host starts some in time, whatever the policy.
        self.assertLess(score.value, 0.5)
        self.assertIn("not answered (rejected_by_policy)", score.feedback)

    def test_faults_have_their_reason(self):
        score = evaluator().score(PythonPolicy("own", impossible))
        self.assertGreater(score.metrics["faults"], 0)
        self.assertRegex(score.feedback, r"fault in \d+ windows?, first in window \d+ .*: .*worker")

    def test_an_exception_scores_nothing(self):
        score = evaluator().score(lambda catalog: lambda window: 1 / 0)
        self.assertEqual(score.value, 0.0)
        self.assertIn("ZeroDivisionError", score.feedback)
        self.assertEqual(evaluator().held_out_score(lambda catalog: 1 / 0).value, 0.0)
        self.assertIn("must be a Plan or None", evaluator().score(lambda catalog: lambda window: 7).feedback)


class OpenEvolve(unittest.TestCase):
    def program(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = Path(folder.name) / "program.py"
        file.write_text(textwrap.dedent(text))
        return file

    def test_a_program_has_a_combined_score(self):
        program = self.program(
            """
            from switchyard.policy import Plan

            def make(catalog):
                def schedule(window):
                    plan = Plan()
                    plan.reject(window.requests.id)
                    return plan
                return schedule
            """
        )
        metrics = evaluator().evaluate(program)
        self.assertEqual(metrics["combined_score"], metrics["utility"])
        self.assertGreater(metrics["violation_ratio"], 0.5)
        self.assertTrue(all(isinstance(value, float) for value in metrics.values()))

    def test_a_program_that_fails_scores_nothing(self):
        for text in ["def make(", "made = 1"]:
            self.assertEqual(evaluator().evaluate(self.program(text))["combined_score"], 0.0)


if __name__ == "__main__":
    unittest.main()
