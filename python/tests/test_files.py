"""Profiles and recordings as columns. The program is in $SWITCHYARD_PROGRAM."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import switchyard

PROFILE = switchyard.reference_profile()


class Profiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "changed.json"

    def test_a_profile_is_written_as_it_was_read(self):
        profile = switchyard.read_profile(PROFILE)
        profile.save(self.file)
        again = switchyard.read_profile(self.file)
        self.assertEqual(again.tables, profile.tables)
        for name in profile.tables:
            ours, theirs = again.table(name), profile.table(name)
            self.assertEqual(list(ours), list(theirs))
            for field in ours:
                if ours[field].dtype.kind == "f":
                    np.testing.assert_allclose(ours[field], theirs[field], rtol=1e-14)
                else:
                    np.testing.assert_array_equal(ours[field], theirs[field])

    def test_changed_latencies_change_the_simulation(self):
        profile = switchyard.read_profile(PROFILE)
        frame = profile.table("latencies").to_pandas()
        for field in ["p50_us", "p95_us", "p99_us"]:
            frame[field] *= 3
        frame["kind"] = frame["kind"].astype(str)
        profile.replaced("latencies", frame).save(self.file)

        def p95_ms(file):
            made = switchyard.simulate(file, "poisson:20", "fcfs", seconds=5)
            return made.summary()["fcfs"]["latency_p95_ms"]["mean"]

        self.assertGreater(p95_ms(self.file), 2 * p95_ms(PROFILE))

    def test_a_wrong_cell_is_named(self):
        profile = switchyard.read_profile(PROFILE)
        columns = dict(profile.table("latencies"))
        columns["p50_us"] = columns["p50_us"].copy()
        columns["p50_us"][3] = 0
        with self.assertRaisesRegex(switchyard.Error, r"changed.json: field `latencies\[3\].p50_us`: 0, must be 1 to"):
            profile.replaced("latencies", columns).save(self.file)
        columns["p50_us"] = np.where(np.arange(len(columns["p50_us"])) == 2, np.inf, 5.0)
        with self.assertRaisesRegex(switchyard.Error, "latencies: row 3: p50_us: inf, must be a finite number"):
            profile.replaced("latencies", columns)
        frame = profile.table("latencies").to_pandas()
        frame["app"] = frame["app"].astype(str)
        frame.loc[2, "app"] = "hart"
        known = ", ".join(sorted({row["app"] for row in profile.data["models"]}))
        with self.assertRaisesRegex(switchyard.Error, rf"`latencies\[2\].app`: `hart`, must be an app of `models`: {known}"):
            profile.replaced("latencies", frame).save(self.file)
        self.assertFalse(self.file.exists())
        with self.assertRaisesRegex(switchyard.Error, "table: 'nowhere', must be one of models"):
            profile.table("nowhere")
        with self.assertRaisesRegex(switchyard.Error, "nowhere.json"):
            switchyard.read_profile("nowhere.json")


class Recordings(unittest.TestCase):
    def test_windows_and_requests_of_a_recording(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "windows.rec"
            line = [os.environ["SWITCHYARD_PROGRAM"], "simulate", "--profile", PROFILE, "--policy", "fcfs"]
            line += ["--workload", "poisson:300", "--seconds", "2", "--record", file]
            subprocess.run(line, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            recording = switchyard.read_recording(file)
        made = switchyard.simulate(PROFILE, "poisson:300", "fcfs", seconds=2)
        windows = made.windows()
        for name in ["window", "at_us", "because", "pending", "dispatched"]:
            self.assertEqual(list(recording.windows[name]), list(windows[name]), name)
        self.assertEqual(recording.missing, 0)
        requests = made.requests()
        arrivals = sorted(requests["arrival_us"])
        self.assertEqual(recording.trace.at_us.tolist(), [at - arrivals[0] for at in arrivals])
        again = switchyard.simulate(PROFILE, recording.trace, "fcfs").summary()["fcfs"]
        self.assertEqual(again["arrivals"]["mean"], len(arrivals))

    def test_a_file_that_is_no_recording_is_named(self):
        with self.assertRaisesRegex(switchyard.Error, "reference.json"):
            switchyard.read_recording(PROFILE)


if __name__ == "__main__":
    unittest.main()
