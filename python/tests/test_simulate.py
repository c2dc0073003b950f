"""Simulations from Python give the results of the command. The program is in $SWITCHYARD_PROGRAM."""

import contextlib
import io
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np

import switchyard

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["SWITCHYARD_PROGRAM"]
PROFILE = ROOT / "profiles" / "reference.json"


def command(*words):
    """The results of the command as JSON, from an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        line = [PROGRAM, "simulate", "--profile", PROFILE, "--json", "-", *words]
        output = subprocess.run(line, cwd=folder, stdout=subprocess.PIPE, check=True)
    return json.loads(output.stdout)


def simulate(*args, **options):
    return switchyard.simulate(PROFILE, *args, **options)


class SameAsTheCommand(unittest.TestCase):
    def check(self, made, words):
        theirs = command(*words)
        for part in ["format", "catalog", "runs"]:
            self.assertEqual(made.data[part], theirs[part], part)
        for of_machine in ["command", "date"]:
            theirs["meta"].pop(of_machine)
        ours = {field: value for field, value in made.data["meta"].items() if field in theirs["meta"]}
        self.assertEqual(ours, theirs["meta"])

    def test_policies_and_seeds(self):
        made = simulate("poisson:400", ["fcfs", "sneakpeek", "edf"], seeds=2, seconds=5)
        words = "--policy fcfs --policy sneakpeek --policy edf --workload poisson:400 --seeds 2 --seconds 5"
        self.check(made, words.split())

    def test_a_sweep_with_settings(self):
        slow = switchyard.Policy("sneakpeek", name="oblivious", settings={"data_aware": False, "short_circuit": False})
        options = {"seeds": range(7, 9), "seconds": 2, "sweep": "load=0.5,1.5", "workers": 3}
        made = simulate("gamma:300,0.5", [slow], late="drop", service="normal:0.9,0.1", cold=True, **options)
        policy = "oblivious=sneakpeek{data_aware = false, short_circuit = false}"
        words = ["--policy", policy, *"--workload gamma:300,0.5 --seeds 2 --seed 7 --seconds 2 --workers 3".split()]
        words += "--sweep load=0.5,1.5 --late drop --service normal:0.9,0.1 --cold".split()
        self.check(made, words)
        self.assertEqual(made.points, ["load=0.5", "load=1.5"])
        self.assertEqual(made.seeds, [7, 8])

    def test_numbers_of_numpy_are_settings(self):
        given = {"a": np.float64(0.1), "b": np.float32(0.5), "c": np.int64(3), "d": np.bool_(True), "e": [np.uint8(7)]}
        plain = {"a": 0.1, "b": 0.5, "c": 3, "d": True, "e": [7]}
        texts = [switchyard.Policy("own", settings=settings)._parts() for settings in (given, plain)]
        self.assertEqual(*texts)

    def test_a_server_s_own_times(self):
        made = simulate("poisson:300", "fcfs", seconds=2, link_us=200, wire_us=900)
        self.check(made, "--policy fcfs --workload poisson:300 --seconds 2 --link-us 200 --wire-us 900".split())
        quicker = simulate("poisson:300", "fcfs", seconds=2)
        self.assertNotEqual(made.data["runs"], quicker.data["runs"])
        with self.assertRaisesRegex(switchyard.Error, "wire_us: -1, must be a whole number from 0 to 60000000"):
            simulate("poisson:300", "fcfs", seconds=2, wire_us=-1)

    def test_a_workload_as_a_dictionary(self):
        streams = [{"arrivals": {"trace": {"arrivals_us": list(range(0, 900_000, 5_000))}}}]
        made = simulate({"streams": streams}, "fcfs")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"streams": streams}, file)
            file.flush()
            theirs = command("--policy", "fcfs", "--workload", file.name)
        self.assertEqual(made.data["runs"], theirs["runs"])

    def test_threads_do_not_matter(self):
        one, two = (simulate("poisson:200", ["fcfs", "edf"], seeds=3, seconds=1, threads=n) for n in (1, 2))
        self.assertEqual(one.data["runs"], two.data["runs"])


class Progress(unittest.TestCase):
    def test_progress_ends_with_all_runs(self):
        seen = []
        simulate("poisson:200", ["fcfs", "edf"], seeds=3, seconds=1, progress=lambda *numbers: seen.append(numbers))
        self.assertEqual(seen[-1], (6, 6))
        self.assertEqual(seen, sorted(seen))

    def test_a_bar_is_written_to_the_standard_error_output(self):
        with contextlib.redirect_stderr(io.StringIO()) as written:
            simulate("poisson:200", "edf", seeds=2, seconds=1, progress=True)
        self.assertTrue(written.getvalue().endswith("] 2/2 runs\n"), written.getvalue())

    def test_an_exception_of_progress_ends_the_simulation(self):
        with self.assertRaises(ZeroDivisionError):
            simulate("poisson:200", "edf", seeds=2, seconds=1, progress=lambda done, count: 1 / 0)
        with self.assertRaisesRegex(switchyard.Error, "progress: 7, must be True, False or a function"):
            simulate("poisson:200", "edf", progress=7)


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = simulate("poisson:600", ["fcfs", "sneakpeek"], seeds=3, seconds=2)

    def test_the_summary_has_means_intervals_and_seeds(self):
        summary = self.made.summary()
        self.assertEqual(list(summary), ["fcfs", "sneakpeek"])
        for metrics in summary.values():
            arrivals = metrics["arrivals"]
            self.assertEqual(len(arrivals["by_seed"]), 3)
            self.assertAlmostEqual(arrivals["mean"], np.mean(arrivals["by_seed"]))
            self.assertGreater(arrivals["half_width"], 0)
        app = self.made.data["catalog"]["apps"][0]["name"]
        of_app = self.made.summary(app=app)["fcfs"]["arrivals"]["mean"]
        self.assertLess(0, of_app)
        self.assertLess(of_app, summary["fcfs"]["arrivals"]["mean"])

    def test_tables_that_are_kept_are_those_of_another_run(self):
        kept = simulate("poisson:600", ["fcfs", "sneakpeek"], seeds=3, seconds=2, keep=["windows", "requests"])
        for name in ["requests", "windows", "batches"]:
            ours, theirs = getattr(kept, name)(), getattr(self.made, name)()
            self.assertEqual(list(ours), list(theirs))
            for column in ours:
                np.testing.assert_array_equal(ours[column], theirs[column], column)
        with self.assertRaisesRegex(switchyard.Error, "keep: `replies`, must be requests, batches or windows"):
            simulate("poisson:600", "edf", keep="replies")

    def test_rows_add_up_to_the_summary(self):
        requests, batches, windows = self.made.requests(), self.made.batches(), self.made.windows()
        for policy, metrics in self.made.summary().items():
            for seed, arrivals in zip(self.made.seeds, metrics["arrivals"]["by_seed"]):
                own = (requests["policy"] == policy) & (requests["seed"] == seed)
                self.assertEqual(own.sum(), arrivals)
            at = self.made.policies.index(policy)
            runs = self.made.data["runs"][at]["reports"]
            own = batches.codes("policy") == at
            self.assertEqual(own.sum(), sum(run["batches"]["count"] for run in runs))
            own = windows.codes("policy") == at
            self.assertEqual(own.sum(), sum(metrics["windows"]["by_seed"]))
            outcomes = requests["outcome"][requests.codes("policy") == at]
            counts = dict(zip(*np.unique(outcomes, return_counts=True)))
            ledger = {}
            for run in runs:
                for outcome, count in run["ledger"].items():
                    ledger[outcome] = ledger.get(outcome, 0) + count
            self.assertEqual(counts, {outcome: count for outcome, count in ledger.items() if count})

    def test_rows_refer_to_each_other(self):
        requests, batches = self.made.requests(), self.made.batches()
        cells = ["policy", "seed", "batch"]
        sizes = {key: size for *key, size in zip(*(batches[name] for name in [*cells, "size"])) for key in [tuple(key)]}
        ran = np.flatnonzero(requests["batch"] >= 0)
        self.assertGreater(len(ran), 0)
        keys = [requests[name][ran] for name in cells]
        self.assertEqual([sizes[key] for key in zip(*keys)], list(requests["batch_size"][ran]))
        answered = requests["outcome"] == "in_time"
        self.assertTrue((requests["variant"][answered] != "").all())
        self.assertTrue((requests["latency_us"][answered] > 0).all())

    def test_tables_for_pandas_and_arrow(self):
        table, frame = self.made.to_arrow(), self.made.to_pandas()
        self.assertEqual((table.num_rows, frame.shape[0]), (6, 6))
        self.assertEqual(table.column("utility").to_pylist(), list(frame["utility"]))
        self.assertEqual(list(frame["policy"]), ["fcfs"] * 3 + ["sneakpeek"] * 3)
        requests = self.made.requests()
        frame, table = requests.to_pandas(), requests.to_arrow()
        self.assertEqual(list(frame.columns), table.column_names)
        self.assertEqual(frame["worker"].isna().sum(), table.column("worker").null_count)
        self.assertEqual(list(frame["outcome"].astype(str)), list(requests["outcome"]))

    def test_pages_figures_and_differences(self):
        self.assertIn("<svg", self.made.plot()._repr_svg_())
        self.assertIn("<html", self.made.to_html())
        [difference] = self.made.compare("fcfs")
        self.assertEqual(difference["policy"], "sneakpeek")
        self.assertEqual(difference["baseline"], "fcfs")


class Refusals(unittest.TestCase):
    def refused(self, expected, *args, **options):
        with self.assertRaises(switchyard.Error) as caught:
            simulate(*args, **options)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIn(expected, str(caught.exception))

    def test_errors_name_field_value_and_range(self):
        self.refused("workload: poisson.rate: must be positive, not -1", "poisson:-1", "fcfs")
        self.refused("unknown app `nowhere`", "nowhere=poisson:5", "fcfs")
        self.refused("did you mean `sneakpeek`", "poisson:5", "sneakpek")
        self.refused("policies: empty", "poisson:5", [])
        self.refused("given twice", "poisson:5", ["fcfs", "fcfs"])
        self.refused("seeds: 0 seeds, must be 1 to 1000", "poisson:5", "fcfs", seeds=0)
        self.refused("seconds: -1, must be a positive number", "poisson:5", "fcfs", seconds=-1)
        self.refused("workers: 0, must be a whole number from 1 to 10000", "poisson:5", "fcfs", workers=0)
        self.refused("percentile: `p42`, must be p50, p95 or p99", "poisson:5", "fcfs", percentile="p42")
        self.refused("sweep: `tau=1`", "poisson:5", "fcfs", sweep="tau=1")
        self.refused("edf has no settings", "poisson:5", switchyard.Policy("edf", settings={"a": 1}))
        self.refused("seeds: -1, must be a whole number from 0", "poisson:5", "fcfs", seeds=[1, -1])
        self.refused("seeds: 1.5, must be a whole number", "poisson:5", "fcfs", seeds=1.5)
        self.refused("seeds: 'one', must be a whole number", "poisson:5", "fcfs", seeds="one")
        self.refused("seeds: 1001 seeds, must be 1 to 1000", "poisson:5", "fcfs", seeds=10**9)
        self.refused("workers: -2, must be a whole number from 1", "poisson:5", "fcfs", workers=-2)
        self.refused("seconds: NaN, must be a positive number", "poisson:5", "fcfs", seconds=float("nan"))
        self.refused("seconds: '5', must be a positive number", "poisson:5", "fcfs", seconds="5")
        self.refused("threads: -1, must be a whole number from 0", "poisson:5", "fcfs", threads=-1)
        self.refused("policies: 7, must be a name, a file *.wasm", "poisson:5", ["fcfs", 7])
        self.refused("policies: None, must be a name, a file *.wasm", "poisson:5", None)
        self.refused("settings: None, must be a boolean, number", "poisson:5", switchyard.Policy("edf", settings={"a": None}))
        self.refused("workload: ", {"streams": [{"arrivals": {"poisson": {"rate": float("nan")}}}]}, "fcfs")
        trace = {"trace": {"arrivals_us": [5, 3]}}
        self.refused("arrivals_us[1]: is 3, must be at least 5, that of the row before", {"streams": [{"arrivals": trace}]}, "fcfs")
        self.refused("workload: ndarray, must be a spec, a JSON file, a dictionary or a Trace", np.array([1, 2]), "fcfs")
        self.refused("workload: streams[0].arrivals", {"streams": [{"arrivals": {"poisson": {}}}]}, "fcfs")

    def test_a_wrong_profile_is_named(self):
        with self.assertRaisesRegex(switchyard.Error, "nowhere.json"):
            switchyard.simulate("nowhere.json", "poisson:5", "fcfs")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("{}")
            file.flush()
            with self.assertRaisesRegex(switchyard.Error, file.name):
                switchyard.simulate(file.name, "poisson:5", "fcfs")

    def test_unknown_points_apps_and_baselines(self):
        made = simulate("poisson:50", ["fcfs", "edf"], seconds=1, sweep="load=1,2")
        with self.assertRaisesRegex(switchyard.Error, "point: None, must be one of 'load=1', 'load=2'"):
            made.summary()
        with self.assertRaisesRegex(switchyard.Error, "app: 'nowhere', must be one of"):
            made.summary("load=1", app="nowhere")
        with self.assertRaisesRegex(switchyard.Error, "baseline: `mael`"):
            made.compare("mael")
        with self.assertRaisesRegex(switchyard.Error, "seeds: 1, must be at least 3"):
            made.compare("edf")
        with self.assertRaisesRegex(switchyard.Error, "rows: `nowhere`, must be requests, batches or windows"):
            made._native.rows("nowhere")
        with self.assertRaisesRegex(KeyError, "column: 'nowhere', must be one of point, policy, "):
            made.runs()["nowhere"]
        with self.assertRaisesRegex(KeyError, "column: 'seed', must be one of point, policy, which have names"):
            made.runs().names("seed")
        self.assertIsNone(made.runs().get("nowhere"))


class Threads(unittest.TestCase):
    def test_other_threads_run_meanwhile(self):
        done, ticks = threading.Event(), 0

        def work():
            try:
                simulate("poisson:1000", "sneakpeek", seconds=60)
            finally:
                done.set()

        worker = threading.Thread(target=work)
        worker.start()
        while not done.is_set():
            time.sleep(0.001)
            ticks += 1
        worker.join()
        self.assertGreater(ticks, 20)

    def test_an_interrupt_ends_the_runs_that_have_not_begun(self):
        # A shell that starts a program in the background has it ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        started = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            simulate("poisson:1000", "sneakpeek", seconds=60, seeds=1000)
        self.assertLess(time.monotonic() - started, 60)

    def test_an_interrupt_ends_no_later_call(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        interrupts = []

        def make(catalog):
            if interrupts:
                os.kill(os.getpid(), interrupts.pop())
                # Longer than the time between two looks at signals.
                time.sleep(0.5)
            return lambda window: None

        made = simulate("poisson:50", switchyard.PythonPolicy("own", make), seconds=1)
        interrupts.append(signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            made.requests()
        self.assertGreater(len(made.requests()["seed"]), 0)


if __name__ == "__main__":
    unittest.main()
