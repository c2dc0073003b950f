#!/usr/bin/env python3
"""Writes two profiles.

unlike.json: ../sneakpeek/profile.json on two unlike kinds of workers whose memory holds few models.
`cpu-2t` has the measured latencies, `cpu-1t` takes 2.5 times as long. Models take 20 times as long
to load, as large models do, and unlike.toml gives the workers 1 MiB.

slices.json: the GPU of ../mael/profile.json with VGG-16, which can stop at three places, and SqueezeNet.
"""

import copy
import json
from pathlib import Path

HERE = Path(__file__).parent
SPEEDS = {"cpu-2t": 1.0, "cpu-1t": 2.5}
TIMES = ("p50_us", "p95_us", "p99_us")
SHARE_A_GPU = ("vgg16", "squeezenet")


def main() -> None:
    unlike()
    slices()


def unlike() -> None:
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
    write(profile, "unlike.json")


def slices() -> None:
    profile = json.loads((HERE / "../mael/profile.json").read_text())
    profile["apps"] = [app for app in profile["apps"] if app["name"] in SHARE_A_GPU]
    for table in ("models", "latencies", "slicing"):
        profile[table] = [row for row in profile[table] if on_the_gpu(row)]
    profile["accuracies"] = [row for row in profile["accuracies"] if row["app"] in SHARE_A_GPU]
    write(profile, "slices.json")


def on_the_gpu(row: dict) -> bool:
    return row["kind"] == "gpu" and row["app"] in SHARE_A_GPU


def write(profile: dict, name: str) -> None:
    # One row a line.
    rows = json.dumps(profile).replace("}, {", "},\n{")
    (HERE / name).write_text(rows + "\n")


main()
