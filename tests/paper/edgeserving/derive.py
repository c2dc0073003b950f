#!/usr/bin/env python3
"""Writes profile.json, combinations.json and cpu.json; README.md says how each number follows.

    python3 tests/paper/edgeserving/derive.py [--cpu]

cpu.json is made with --cpu only: it holds what profiles/reference.json held then.
"""

import json
import pathlib
import sys

# ResNet bottleneck blocks by residual stage (He et al., table 1).
BLOCKS = {
    "resnet50": [3, 4, 6, 3],
    "resnet101": [3, 4, 23, 3],
    "resnet152": [3, 8, 36, 3],
}
# EdgeServing's table I, percent, by exit.
ACCURACY = {
    "resnet50": [7.6, 12.1, 30.8, 74.4],
    "resnet101": [7.4, 14.5, 54.3, 77.9],
    "resnet152": [7.3, 17.2, 47.4, 78.0],
}
EXITS = ["layer1", "layer2", "layer3", "final"]
SLO_US = 50_000
BATCH_MAX = 10

# Mean time of one block, and of everything that is no block in times of one.
BLOCK_US = 402
REST_BLOCKS = 26 / 7
# Extra time of ten requests over one, as a share.
BATCH_GROWTH = 0.25
# Standard deviation of a latency as a share of its mean, and the normal quantiles.
SPREAD = 0.015
P95, P99 = 1.645, 2.326


def latencies(model):
    """Per exit and batch: stages run, exit, batch, and the percentiles in microseconds."""
    blocks = 0
    for stage, exit in enumerate(EXITS):
        blocks += BLOCKS[model][stage]
        for batch in range(1, BATCH_MAX + 1):
            growth = 1 + BATCH_GROWTH * (batch - 1) / (BATCH_MAX - 1)
            mean = BLOCK_US * (REST_BLOCKS + blocks) * growth
            p50, p95, p99 = (round(mean * (1 + k * SPREAD)) for k in (0, P95, P99))
            yield stage + 1, exit, batch, p50, p95, p99


def profile(apps):
    """The profile of apps by name, each with one model."""
    kind = "rtx-3080"
    cells = {"apps": [], "models": [], "accuracies": [], "slicing": [], "latencies": []}
    for app, model in apps.items():
        of = {"app": app, "variant": model}
        cells["apps"].append({"name": app, "slo_us": SLO_US})
        # All models stay resident; nothing here depends on their size.
        held = {"memory_bytes": 0, "load_us": 0, "stages": len(EXITS)}
        cells["models"].append({"kind": kind, **of, **held})
        for exit, percent in zip(EXITS, ACCURACY[model]):
            known = {"source": "imported", "samples": 0, "accuracy": percent / 100}
            cells["accuracies"].append({**of, "exit": exit, **known})
        for to_stage, exit, batch, p50, p95, p99 in latencies(model):
            run = {"from_stage": 0, "to_stage": to_stage, "exit": exit, "batch": batch}
            times = {"samples": 0, "p50_us": p50, "p95_us": p95, "p99_us": p99}
            cells["latencies"].append({"kind": kind, **of, **run, **times})
    return cells


def measured(file):
    """The measured ResNets of the images app, each as an app, with the paper's SLO."""
    cells = {"apps": [], "models": [], "accuracies": [], "slicing": [], "latencies": []}
    for name in ("models", "accuracies", "latencies"):
        for row in file[name]:
            if row["app"] != "images" or row.get("from_stage", 0) > 0:
                continue
            if name == "latencies" and "exit" not in row:
                continue
            left_out = ("confusion", "recall", "workload_accuracy", "parameters", "activation_bytes")
            kept = {key: value for key, value in row.items() if key not in left_out}
            cells[name].append({**kept, "app": row["variant"]})
    for model in cells["models"]:
        cells["apps"].append({"name": model["app"], "slo_us": SLO_US})
    return cells


def line(value):
    return json.dumps(value, separators=(",", ":"))


NOTE = "scaled to EdgeServing's published operating points; not measured"
ELSEWHERE = {"cpu": "elsewhere (scaled)", "cores": 0, "arch": "elsewhere", "os": "elsewhere"}


def text(cells, note=NOTE, machine=ELSEWHERE, date="2026-11-21T00:00:00Z"):
    """As `switchyard profile` writes it: one line per entry."""
    made = {
        "date": date,
        "command": "python3 tests/paper/edgeserving/derive.py",
        "notes": [note],
    }
    parts = ['"schema": 2', f'"made": {line(made)}', f'"machine": {line(machine)}']
    for name, entries in cells.items():
        lines = ",\n".join(f"    {line(entry)}" for entry in entries)
        parts.append(f'"{name}": [\n{lines}\n  ]' if entries else f'"{name}": []')
    return "{\n  " + ",\n  ".join(parts) + "\n}\n"


def main():
    here = pathlib.Path(__file__).parent
    models = list(BLOCKS)
    here.joinpath("profile.json").write_text(text(profile({m: m for m in models})))
    three = {f"{model}-{copy}": model for model in models for copy in "abc"}
    here.joinpath("combinations.json").write_text(text(profile(three)))
    if "--cpu" in sys.argv:
        source = here / "../../../profiles/reference.json"
        file = json.loads(source.read_text())
        made = file["made"]
        note = f"the images app of profiles/reference.json, measured by `{made['command']}`"
        here.joinpath("cpu.json").write_text(text(measured(file), note, file["machine"], made["date"]))


if __name__ == "__main__":
    main()
