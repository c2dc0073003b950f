#!/usr/bin/env python3
"""Writes profile.json, trace.json, image.json, text.json and the twitter workloads; README.md says
why and how.

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

# The image task: ImageNet accuracy in percent, and the 95th percentile of the latency in milliseconds at
# these batches, from the public artifact's measurements. As in the artifact, a larger batch does not take
# less time.
ANCHORS = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32]
IMAGE = {
    "shufflenet_v2_x0_5": (57.972, [21.9, 38.5, 56.6, 69.2, 82.1, 97.2, 126.3, 183.8, 218.8, 322.1, 427.9]),
    "mobilenet_v3_large": (73.004, [31.5, 46.9, 63.9, 79.6, 97.4, 115.1, 149.4, 219.3, 262.4, 401.3, 541.8]),
    "efficientnet_b0": (77.692, [54.1, 81.0, 141.2, 148.6, 176.8, 208.4, 286.2, 451.0, 623.0, 885.3, 1217.6]),
    "efficientnet_b2": (80.608, [68.3, 102.6, 151.1, 189.0, 233.9, 275.4, 402.9, 601.4, 896.9, 1196.6, 1937.7]),
    "efficientnet_b3": (82.008, [81.3, 128.3, 184.8, 239.7, 302.8, 429.3, 510.8, 758.2, 1380.4, 1707.4, 2537.6]),
    "efficientnet_b4": (83.384, [105.9, 164.8, 242.7, 327.4, 444.7, 587.3, 801.9, 1016.1, 1441.6, 2395.6, 3221.6]),
    "efficientnet_v2_s": (84.228, [117.2, 189.9, 268.8, 350.5, 449.5, 517.5, 698.3, 1142.4, 1519.8, 2258.4, 3020.3]),
    "efficientnet_v2_m": (85.112, [193.5, 305.7, 467.6, 539.0, 673.2, 795.7, 1160.7, 1657.5, 2201.7, 3290.1, 4378.5]),
    "efficientnet_v2_l": (85.808, [366.7, 546.6, 815.6, 1083.2, 1353.8, 1605.2, 2266.4, 3278.1, 4362.9, 6532.5, 8704.9]),
}

# The text task: GLUE-MNLI accuracy in percent, and the 95th percentile of 100 latencies in milliseconds at
# batches of 1 to 32, computed from github.com/dmmendo/RAMSIS, commit 9b74967 (`profiles/seq_models.py`,
# `profiles/text_cloud_cpu`), which names no licence. As in its `profile_utils.py`, a larger batch does not
# take less time; `bert_base` was measured up to 10, and the rest is a linear fit.
TEXT = {
    "bert_tiny": (
        70.2,
        [
            11.4, 16.8, 16.8, 16.8, 16.8, 16.8, 16.8, 16.8, 17.4, 20.2, 20.2, 20.8,
            22.4, 24.2, 25.1, 26.3, 27.5, 29.6, 29.7, 31.8, 31.8, 33.2, 33.7, 36.1,
            36.2, 37.4, 39.2, 40.0, 41.3, 42.9, 43.8, 44.9,
        ],
    ),
    "bert_mini": (
        74.8,
        [
            23.7, 23.7, 37.2, 37.2, 41.8, 45.0, 49.9, 56.1, 60.5, 61.4, 70.0, 70.0,
            74.1, 76.5, 80.5, 82.3, 90.5, 92.5, 102.2, 102.2, 109.3, 109.3, 109.3, 115.8,
            124.2, 124.6, 127.0, 134.2, 139.8, 141.0, 150.2, 177.6,
        ],
    ),
    "bert_small": (
        77.6,
        [
            36.2, 51.3, 64.1, 78.2, 90.5, 105.1, 119.5, 131.5, 147.2, 162.6, 172.1, 183.3,
            197.3, 210.0, 223.6, 232.9, 248.2, 260.2, 276.2, 286.4, 300.0, 314.2, 325.4, 339.8,
            353.0, 364.4, 377.7, 390.7, 405.9, 411.2, 421.6, 486.8,
        ],
    ),
    "bert_medium": (
        80.0,
        [
            54.0, 82.6, 103.7, 124.1, 149.6, 175.0, 201.1, 222.4, 249.1, 272.3, 295.8, 319.3,
            351.8, 377.0, 404.2, 429.6, 454.9, 476.5, 511.4, 535.5, 556.8, 579.8, 603.1, 629.2,
            662.1, 683.2, 711.3, 733.9, 753.3, 784.4, 807.5, 956.7,
        ],
    ),
    "bert_base": (
        84.56,
        [
            136.6, 210.8, 291.4, 371.1, 451.3, 533.3, 617.6, 698.7, 779.1, 911.0, 960.3, 1043.9,
            1127.6, 1211.3, 1295.0, 1378.6, 1462.3, 1546.0, 1629.7, 1713.3, 1797.0, 1880.7, 1964.3, 2048.0,
            2131.7, 2215.4, 2299.0, 2382.7, 2466.4, 2550.1, 2633.7, 2717.4,
        ],
    ),
}

# The Twitter trace of the paper's artifact: requests per second in intervals of 10 s. The last one has
# 1 s, after which the artifact begins again: 791,796 requests in 300 s. The paper's text has 554,395. The
# fitted number is 0.6 of it: 30 workers serve it, 20 do not (fig05-saved).
TWITTER_QPS = [
    1850, 1617, 1880, 1729, 1747, 1839, 1786, 2070, 1992, 2227, 2343, 2344, 2838, 2857,
    3191, 3248, 3418, 3613, 3596, 3875, 3778, 3905, 3738, 3512, 3495, 3459, 3295,
]
TWITTER_S = 300
FITTED_REQUESTS = 332_637


def task(models, batches, how):
    """The layout of the artifact's summary, which `switchyard profile import` reads."""
    rows = []
    for name, (accuracy, p95_ms) in models.items():
        points = {batch: round(ms * 1000) for batch, ms in zip(batches, p95_ms)}
        by_batch = {}
        for batch in range(1, BATCH_MAX + 1):
            ms = interpolated(points, batch) / 1000
            by_batch[str(batch)] = {"p50": ms, "p95": ms}
        rows.append({"name": name, "accuracy": accuracy, "latency_ms_by_batch": by_batch})
    return {"source": f"tests/paper/ramsis/derive.py: 95th percentiles {how}", "models": rows}


def twitter(requests=None):
    """The artifact's rates, or as many times lower as make this many requests."""
    lengths_s = [10] * (len(TWITTER_QPS) - 1) + [1]
    rest_s = TWITTER_S - sum(lengths_s)
    whole = sum(qps * s for qps, s in zip(TWITTER_QPS, lengths_s))
    again = 0
    for qps, s in zip(TWITTER_QPS, lengths_s):
        again += qps * min(s, rest_s)
        rest_s -= min(s, rest_s)
    scale = requests / (whole + again) if requests else 1
    phases = [
        {"rate": round(qps * scale, 3), "length_us": s * 1_000_000} for qps, s in zip(TWITTER_QPS, lengths_s)
    ]
    return {"streams": [{"arrivals": {"phases": phases}}]}


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
write("image.json", task(IMAGE, ANCHORS, "at eleven batches, straight lines between them"), ("models",))
write("text.json", task(TEXT, range(1, BATCH_MAX + 1), "at every batch"), ("models",))
write("twitter.json", twitter())
write("twitter-fitted.json", twitter(FITTED_REQUESTS))
