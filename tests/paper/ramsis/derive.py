#!/usr/bin/env python3
"""Writes profile.json and trace.json; README.md says why and how.

    python3 tests/paper/ramsis/derive.py
"""

import json
import math
import pathlib

HERE = pathlib.Path(__file__).parent
SOURCE = HERE.parent / "sneakpeek" / "profile.json"

APP = "heart"
# Factor on the measured latencies, which then equal the paper's.
SCALE = 50
SLO_US = 150_000
BATCH_MAX = 32

# The trace: length of an interval in seconds, mean load, amplitude of the day, and a spike.
INTERVAL_S, INTERVALS = 4, 24
MEAN_QPS, SWING, SPIKE = 900, 0.42, 1.25


def interpolated(points, batch):
    """The host's rule: a straight line between measured batches, rounded up."""
    above = min(b for b in points if b >= batch)
    below = max((b for b in points if b <= batch), default=above)
    if above == below:
        return points[above]
    low, high = points[below], points[above]
    return low + -(-(high - low) * (batch - below) // (above - below))


def profile():
    source = json.loads(SOURCE.read_text())
    kind = source["models"][0]["kind"]
    made = {"apps": [{"name": APP, "slo_us": SLO_US}], "models": [], "accuracies": [], "slicing": [], "latencies": []}
    for cell in source["accuracies"]:
        if cell["app"] != APP:
            continue
        name = cell["variant"] if cell["exit"] == "final" else f"{cell['variant']}-{cell['exit']}"
        of = {"app": APP, "variant": name}
        # All stay resident; nothing here depends on their size.
        made["models"].append({"kind": kind, **of, "memory_bytes": 0, "load_us": 0, "stages": 1})
        known = {"source": "imported", "samples": 0, "accuracy": round(cell["accuracy"], 6)}
        made["accuracies"].append({**of, "exit": "final", **known})
        runs = [
            run
            for run in source["latencies"]
            if (run["app"], run["variant"], run.get("exit"), run["from_stage"])
            == (APP, cell["variant"], cell["exit"], 0)
        ]
        for batch in range(1, BATCH_MAX + 1):
            times = {
                name: interpolated({run["batch"]: run[name] * SCALE for run in runs}, batch)
                for name in ("p50_us", "p95_us", "p99_us")
            }
            run = {"kind": kind, **of, "from_stage": 0, "to_stage": 1, "exit": "final"}
            made["latencies"].append({**run, "batch": batch, **times, "samples": 0})
    return {
        "schema": 2,
        "made": {
            "date": "2026-11-21T00:00:00Z",
            "command": "python3 tests/paper/ramsis/derive.py",
            "versions": {},
            "notes": [f"{APP} of tests/paper/sneakpeek/profile.json, times {SCALE}; exits are variants"],
        },
        "machine": {"cpu": "derived", "cores": 1, "arch": "none", "os": "none"},
        **made,
    }


def trace():
    """A day in a minute and a half, with one spike."""
    qps = []
    for at in range(INTERVALS):
        day = 1 - SWING * math.cos(2 * math.pi * at / INTERVALS)
        # Varies the intervals without a random number.
        ripple = 1 + 0.05 * math.sin(2.4 * at)
        spike = SPIKE if at == 16 else 1
        qps.append(round(MEAN_QPS * day * ripple * spike))
    source = "tests/paper/ramsis/derive.py: mean requests per second, Poisson inside an interval"
    return {"source": source, "interval_s": INTERVAL_S, "qps": qps}


def write(name, value, rows=()):
    """One line per row of the long lists."""
    parts = []
    for key, entry in value.items():
        if key in rows and entry:
            lines = ",\n".join("    " + json.dumps(row, separators=(",", ":")) for row in entry)
            parts.append(f'  "{key}": [\n{lines}\n  ]')
        else:
            parts.append(f'  "{key}": {json.dumps(entry, separators=(",", ":"))}')
    (HERE / name).write_text("{\n" + ",\n".join(parts) + "\n}\n")


write("profile.json", profile(), ("models", "accuracies", "latencies"))
write("trace.json", trace())
