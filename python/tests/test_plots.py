"""Plots with matplotlib: what they show, and what they say without it."""

import sys
import unittest
from unittest import mock

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

import switchyard  # noqa: E402


def simulate(**options):
    return switchyard.simulate(switchyard.reference_profile(), "poisson:900", ["fcfs", "edf"], seconds=1, **options)


class Plots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = simulate(seeds=3, keep=["requests", "batches", "windows"])
        cls.swept = simulate(seeds=2, sweep="load=0.5,1,2")
        cls.app = cls.made.data["catalog"]["apps"][0]["name"]

    def tearDown(self):
        pyplot.close("all")

    def labels(self, ax):
        return [text.get_text() for text in ax.get_legend().get_texts()]

    def test_a_metric_has_a_point_and_an_interval_per_policy(self):
        ax = self.made.plot_metric("latency_p99_ms")
        self.assertIsInstance(ax, matplotlib.axes.Axes)
        [bars] = ax.containers
        line, _, [intervals] = bars.lines
        summary = self.made.summary()
        for at, policy in enumerate(["fcfs", "edf"]):
            estimate = summary[policy]["latency_p99_ms"]
            self.assertEqual(line.get_ydata()[at], estimate["mean"])
            low, high = intervals.get_segments()[at][:, 1]
            self.assertAlmostEqual(high - low, 2 * estimate["half_width"])
        self.assertEqual(ax.get_ylabel(), "latency_p99_ms")

    def test_a_sweep_has_a_line_per_policy(self):
        _, own = pyplot.subplots()
        ax = self.swept.plot_metric(app=self.app, ax=own)
        self.assertIs(ax, own)
        self.assertEqual(self.labels(ax), ["fcfs", "edf"])
        self.assertEqual(ax.get_ylabel(), f"violation_ratio of {self.app}")
        line = ax.containers[0].lines[0]
        means = [self.swept.summary(point, self.app)["fcfs"]["violation_ratio"]["mean"] for point in self.swept.points]
        np.testing.assert_array_equal(line.get_ydata(), means)

    def test_latencies_end_at_the_share_that_was_answered(self):
        ax = self.made.plot_latency()
        self.assertEqual(self.labels(ax), ["fcfs", "edf"])
        requests = self.made.requests()
        answered = ["in_time", "late", "short_circuit", "short_circuit_late"]
        for line, policy in zip(ax.get_lines(), ["fcfs", "edf"]):
            own = requests["policy"] == policy
            times_ms = requests["latency_us"][own & np.isin(requests["outcome"], answered)] / 1e3
            self.assertEqual(line.get_xdata()[-1], times_ms.max())
            self.assertAlmostEqual(line.get_ydata()[-1], len(times_ms) / own.sum())
        one = self.swept.plot_latency("edf", point="load=2", app=self.app)
        self.assertEqual(self.labels(one), ["edf"])

    def test_a_timeline_shows_batches_and_windows_of_a_part(self):
        ax = self.made.plot_timeline("edf", seed=2, seconds=(0.1, 0.2))
        batches, windows = self.made.batches(), self.made.windows()
        end_us = batches["start_us"] + batches["load_us"] + batches["service_us"]
        own = (batches["policy"] == "edf") & (batches["seed"] == 2) & (batches["start_us"] < 200_000) & (end_us >= 100_000)
        drawn = sum(len(bars.get_paths()) for bars in ax.collections)
        self.assertEqual(drawn, own.sum())
        own = (windows["policy"] == "edf") & (windows["seed"] == 2) & (windows["at_us"] < 200_000) & (windows["at_us"] >= 100_000)
        self.assertEqual(len(ax.get_lines()[0].get_xdata()), own.sum())
        self.assertEqual(ax.get_xlim(), (0.1, 0.2))
        rows = [label.get_text() for label in ax.get_yticklabels()]
        self.assertEqual(rows, ["windows", *batches.names("worker")])

    def test_wrong_names_are_refused(self):
        def refused(expected, call, *args, **options):
            with self.assertRaisesRegex(switchyard.Error, expected):
                call(*args, **options)

        refused("metric: 'speed', must be one of .*'violation_ratio'", self.made.plot_metric, "speed")
        refused("app: 'nowhere', must be one of ", self.made.plot_metric, app="nowhere")
        refused("policy: 'mael', must be one of 'fcfs', 'edf'", self.made.plot_latency, "mael")
        refused("app: 'nowhere', must be one of ", self.made.plot_latency, app="nowhere")
        refused("point: None, must be one of 'load=0.5'", self.swept.plot_latency)
        refused("seed: 9, must be one of 1, 2, 3", self.made.plot_timeline, seed=9)
        refused(r"seconds: \(2, 1\), must be two ascending numbers", self.made.plot_timeline, seconds=(2, 1))

    def test_without_matplotlib_the_way_out_is_named(self):
        hidden = {"matplotlib": None, "matplotlib.pyplot": None}
        with mock.patch.dict(sys.modules, hidden), self.assertRaisesRegex(ImportError, r"pip install switchyard\[plot\]"):
            self.made.plot_metric()
        self.assertIn("<svg", self.made.plot().svg)


if __name__ == "__main__":
    unittest.main()
