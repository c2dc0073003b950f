"""Readers of recorded arrivals, and the mistakes that they name."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
import pandas

import switchyard
from switchyard import traces
from switchyard.gym import SchedulingEnv
from switchyard.stepped import Stepped
from switchyard.traces import Trace

PROFILE = switchyard.reference_profile()


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, text, name="trace.csv"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def refused(self, expected, read, *args, **options):
        with self.assertRaises(switchyard.Error) as caught:
            read(*args, **options)
        self.assertIn(expected, str(caught.exception))


class Readers(Files):
    def test_csv_in_units_and_as_dates(self):
        path = self.file("at,model,tokens\n2.5,a,7\n2.501,b,9\n4,a,1\n")
        trace = traces.read_csv(path, "at", app="model", length="tokens")
        self.assertEqual(trace.at_us.tolist(), [0, 1_000, 1_500_000])
        self.assertEqual((trace.app, trace.length.tolist()), (["a", "b", "a"], [7, 9, 1]))
        self.assertEqual(traces.read_csv(path, "at", unit="ms").at_us.tolist(), [0, 1, 1_500])
        path = self.file("timestamp\n2023-11-16 18:17:03.9799600\n2023-11-16 18:17:04.0319600\n")
        self.assertEqual(traces.read_csv(path).at_us.tolist(), [0, 52_000])
        # The clock goes forward by an hour.
        path = self.file("timestamp\n2024-03-31T01:59:59.5+01:00\n2024-03-31T03:00:00+02:00\n2024-03-31T01:00:01Z\n")
        self.assertEqual(traces.read_csv(path).at_us.tolist(), [0, 500_000, 1_500_000])

    def test_burstgpt_leaves_out_failed_requests(self):
        heading = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        path = self.file(heading + "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,0,1087,API log\n118,GPT-4,9,1,10,API log\n")
        trace = traces.read_burstgpt(path)
        self.assertEqual(trace.at_us.tolist(), [0, 113_000_000])
        self.assertEqual((trace.app, trace.length.tolist()), (["ChatGPT", "GPT-4"], [472, 9]))
        self.assertEqual(len(traces.read_burstgpt(path, failed=True)), 3)

    def test_azure(self):
        path = self.file("app,func,end_timestamp,duration\nx,f,10.5,5.0\nx,g,9.0,1.0\n")
        trace = traces.read_azure_functions(path)
        self.assertEqual((trace.at_us.tolist(), trace.app), ([0, 2_500_000], ["f", "g"]))
        minutes = ",".join(str(minute) for minute in range(1, 1_441))
        rows = "".join(f"o,a,f{n},http,{','.join([str(60 * n)] * 1_440)}\n" for n in (1, 3))
        path = self.file(f"HashOwner,HashApp,HashFunction,Trigger,{minutes}\n{rows}")
        [stream] = traces.read_azure_functions(path)["streams"]
        self.assertEqual(stream["arrivals"]["trace"], {"interval_s": 60, "qps": [4.0] * 1_440})
        [stream] = traces.read_azure_functions(path, functions=1)["streams"]
        self.assertEqual(stream["arrivals"]["trace"]["qps"][0], 3.0)
        path = self.file("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.5,374,44\n2023-11-16 18:17:04.75,396,109\n")
        trace = traces.read_azure_llm(path)
        self.assertEqual((trace.at_us.tolist(), trace.length.tolist()), ([0, 1_250_000], [374, 396]))

    def test_mooncake(self):
        lines = ['{"timestamp": 0, "input_length": 6955, "output_length": 52, "hash_ids": [46]}']
        lines += ['{"timestamp": 27482, "input_length": 10, "output_length": 1, "hash_ids": []}']
        trace = traces.read_mooncake(self.file("\n".join(lines)))
        self.assertEqual((trace.at_us.tolist(), trace.length.tolist()), ([0, 27_482_000], [6955, 10]))

    def test_rates(self):
        [stream] = traces.read_rates(self.file("30\n60\n0\n"), interval_s=60)["streams"]
        self.assertEqual(stream["arrivals"]["trace"], {"interval_s": 60, "qps": [0.5, 1.0, 0.0]})
        path = self.file("minute,tweets\n1,5\n2,7\n")
        [stream] = traces.read_rates(path, "tweets")["streams"]
        self.assertEqual(stream["arrivals"]["trace"]["qps"], [5.0, 7.0])
        self.refused("row 1: requests: 'minute,tweets', must be a number of at least 0", traces.read_rates, path)
        self.refused("row 2: requests: '-1', must be a number of at least 0", traces.read_rates, self.file("3\n-1\n"))
        self.refused("has no request", traces.read_rates, self.file("0\n"))
        self.refused("interval_s: 0, must be a positive number", traces.read_rates, path, interval_s=0)

    def test_frames(self):
        frame = pandas.DataFrame({"at": pandas.to_datetime(["2024-01-01 00:00:01.0", "2024-01-01 00:00:02.5"]), "app": ["heart", "fall"]})
        trace = Trace.of_frame(frame, "at", app="app")
        self.assertEqual(trace.at_us.tolist(), [0, 1_500_000])
        again = Trace.of_frame(trace.to_pandas(), app="app")
        self.assertEqual(again.to_workload(), trace.to_workload())
        self.refused("has no column `time`, must be one of at, app", Trace.of_frame, frame, "time")


class Changes(unittest.TestCase):
    def test_a_trace_is_scaled_cut_and_renamed(self):
        trace = Trace([0, 100, 1_000_000], ["x", "y", "x"], [5, 6, 7])
        self.assertEqual(trace.scaled(2).at_us.tolist(), [0, 50, 500_000])
        self.assertEqual(trace.first(0.5).app, ["x", "y"])
        self.assertEqual(trace.renamed({"x": "heart", "y": "fall"}).app, ["heart", "fall", "heart"])
        self.assertEqual(trace.renamed(str.upper).deadline_us.tolist(), [5, 6, 7])

    def test_a_trace_is_simulated_request_by_request(self):
        apps = ["heart", "fall", "heart", "heart"]
        trace = Trace([0, 20_000, 20_000, 90_000], apps, [50_000] * 4)
        made = switchyard.simulate(PROFILE, trace, "edf")
        rows = made.requests()
        self.assertEqual(sorted(rows["arrival_us"]), trace.at_us.tolist())
        self.assertEqual(sorted(rows["app"]), sorted(apps))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trace.json"
            trace.save(file)
            self.assertEqual(switchyard.simulate(PROFILE, file, "edf").data["runs"], made.data["runs"])


class Refusals(Files):
    def test_files_name_row_column_and_range(self):
        self.refused("has no column `timestamp`; its columns are at, b", traces.read_csv, self.file("at,b\n1,2\n"))
        self.refused("row 2: timestamp: 1.0, must be at least 3.0", traces.read_csv, self.file("timestamp\n3\n1\n"))
        self.refused("row 1: timestamp: 'nan', must be a number", traces.read_csv, self.file("timestamp\nnan\n1\n"))
        self.refused("row 2: timestamp: 'x', must be a number", traces.read_csv, self.file("timestamp\n1\nx\n"))
        self.refused("row 1: 1 fields, must be 2", traces.read_csv, self.file("timestamp,b\n1\n"))
        self.refused("has no request", traces.read_csv, self.file("timestamp\n"))
        self.refused("row 2: timestamp: '2024-99', must be a date", traces.read_csv, self.file("timestamp\n2024-01-01\n2024-99\n"))
        self.refused("unit: 'h', must be one of s, ms, us, ns", traces.read_csv, self.file("timestamp\n1\n"), unit="h")
        self.refused("nowhere.csv", traces.read_csv, self.folder / "nowhere.csv")
        path = self.file('{"timestamp": 1, "input_length": 4}\n{"timestamp": 2}\n')
        self.refused("row 2: input_length: None, must be a number", traces.read_mooncake, path)
        path = self.file('{"timestamp": 2, "input_length": 4}\n{"timestamp": 1, "input_length": 4}\n')
        self.refused("row 2: timestamp: 1.0, must be at least 2.0", traces.read_mooncake, path)
        self.refused("row 1: is not JSON", traces.read_mooncake, self.file("x\n"))

    def test_columns_name_row_and_range(self):
        self.refused("trace: row 2: at_us: 3, must be at least 5", Trace, [5, 3])
        self.refused("row 1: at_us: nan, must be a number", Trace, [np.nan])
        self.refused("row 1: at_us: -1, must be a whole number from 0", Trace, [-1])
        self.refused("row 2: deadline_us: 0, must be a whole number from 1", Trace, [1, 2], ["a", "a"], [5, 0])
        self.refused("length: 1 rows, must be 2", Trace, [1, 2], length=[3])
        self.refused("row 2: app: 'y', must be one of 'x'", Trace([1, 2], ["x", "y"]).renamed, {"x": "heart"})
        self.refused("length: needs apps", Trace([1], length=[3]).to_workload)
        self.refused("trace: row 2: app: nan, must be a name", Trace, [1, 2], ["a", float("nan")])
        self.refused("trace: row 1: app: None, must be a name", Trace, [1], [None])
        dates = pandas.DataFrame({"at": pandas.to_datetime(["2024-01-01", None])})
        self.refused("frame: row 2: at: NaT, must be a date", Trace.of_frame, dates, "at")
        self.refused("frame: row 2: at: 1.0, must be at least 2.0", Trace.of_frame, {"at": [2.0, 1.0]}, "at")
        self.refused("frame: row 1: at: nan, must be a number", Trace.of_frame, {"at": [np.nan]}, "at")
        self.refused("trace: at_us: <U1, must be numbers", Trace, ["a"])
        self.refused("trace: at_us: has 2 dimensions, must have 1", Trace, np.zeros((2, 2)))
        self.refused("factor: 0, must be a positive number", Trace([1]).scaled, 0)
        self.refused("seconds: nan, must be a positive number", Trace([1]).first, float("nan"))
        unknown = Trace([1, 2], ["heart", "nowhere"], source="day.csv")
        expected = "day.csv: row 2: app: 'nowhere', must be one of "
        self.refused(expected, switchyard.simulate, PROFILE, unknown, "edf")
        self.refused(expected, Stepped, PROFILE, unknown)
        self.refused("heart", Stepped, PROFILE, unknown)
        self.refused(expected, SchedulingEnv, PROFILE, unknown)


if __name__ == "__main__":
    unittest.main()
