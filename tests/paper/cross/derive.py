#!/usr/bin/env python3
"""Writes unlike.json: ../sneakpeek/profile.json on two unlike kinds of workers whose memory holds few models.

`cpu-2t` has the measured latencies, `cpu-1t` takes 2.5 times as long. Models take 20 times as long
to load, as large models do, and unlike.toml gives the workers 1 MiB.
"""

import copy
import json
from pathlib import Path

HERE = Path(__file__).parent
SPEEDS = {"cpu-2t": 1.0, "cpu-1t": 2.5}
TIMES = ("p50_us", "p95_us", "p99_us")


def main() -> None:
    profile = json.loads((HERE / "../sneakpeek/profile.json").read_text())
    models, latencies = [], []
    for kind, slower in SPEEDS.items():
        for model in profile["models"]:
            model = {**model, "kind": kind}
            model["activation_bytes"] = 0
            model["load_us"] *= 20
            models.append(model)
        for row in profile["latencies"]:
            row = copy.deepcopy({**row, "kind": kind})
            for time in TIMES:
                row[time] = round(row[time] * slower)
            latencies.append(row)
    profile["slicing"] = []
    profile["models"], profile["latencies"] = models, latencies
    # One row a line.
    rows = json.dumps(profile).replace("}, {", "},\n{")
    (HERE / "unlike.json").write_text(rows + "\n")


main()
