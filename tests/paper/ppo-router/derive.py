#!/usr/bin/env python3
"""Writes profile.json, light-10.json for Figure 3 and heavy-33.json for HW-E; README.md says how each number follows.
Prints the fluid bound of the periodic workload.

    python3 tests/paper/ppo-router/derive.py
"""

import json
import pathlib

APP = "imagenet"
KIND = "t4"
# P98 of 300 ms (section 5.1.3).
SLO_US = 300_000
# PNASNet-5-Large and EfficientNet-B0: top-1 on ImageNet's validation set in percent (section
# 5.1.1); service time of one request in microseconds, and by how much of that each further one
# of a batch makes it longer.
MODELS = {
    "heavy": {"accuracy": 82.78, "alone_us": 42_800, "more": 0.90},
    "light": {"accuracy": 77.69, "alone_us": 12_000, "more": 0.25},
}
# Figure 3: with 12 ms no shares meet a required latency of 150 ms in a burst, but SA does in the paper. Any time up to
# 10 ms allows it.
LIGHT_US_FIGURE_3 = 10_000
# Four instances that answer 66.8 % of 180 a second in time, as HW-E does in the paper, less what it rejects too early.
HEAVY_US_HW_E = 32_500
# Section 5.2.2; the profile is linear between them.
BATCHES = [1, 3, 5]
# Instances of each model, and the periodic workload: requests a second and seconds of each phase (section 5.1).
INSTANCES = 2
PHASES = [(180, 27.8), (10, 500)]


def latencies(model):
    """Batch and microseconds. Service times are deterministic (section 5.1.5)."""
    for batch in BATCHES:
        yield batch, round(model["alone_us"] * (1 + (batch - 1) * model["more"]))


def profile():
    cells = {
        "apps": [{"name": APP, "slo_us": SLO_US}],
        "models": [],
        "accuracies": [],
        "slicing": [],
        "latencies": [],
    }
    for variant, model in MODELS.items():
        of = {"app": APP, "variant": variant}
        # The policy assigns requests; its deployment is not part of the experiment.
        held = {"memory_bytes": 0, "load_us": 0, "stages": 1}
        cells["models"].append({"kind": KIND, **of, **held})
        known = {"source": "imported", "samples": 0, "accuracy": model["accuracy"] / 100}
        cells["accuracies"].append({**of, "exit": "final", **known})
        for batch, us in latencies(model):
            run = {"from_stage": 0, "to_stage": 1, "exit": "final", "batch": batch}
            times = {"samples": 0, "p50_us": us, "p95_us": us, "p99_us": us}
            cells["latencies"].append({"kind": KIND, **of, **run, **times})
    return cells


def fluid_bound(batch):
    """The largest goodput: each phase fills its heavy instances with batches of a size, and light ones take the rest."""
    heavy, light = MODELS["heavy"], MODELS["light"]
    most = INSTANCES * 1e6 * batch / dict(latencies(heavy))[batch]
    good, all_requests = 0.0, 0.0
    for rate, seconds in PHASES:
        on_heavy = min(rate, most)
        good += seconds * (on_heavy * heavy["accuracy"] + (rate - on_heavy) * light["accuracy"])
        all_requests += seconds * rate
    return good / all_requests


def line(value):
    return json.dumps(value, separators=(",", ":"))


def text(cells):
    """As `switchyard profile` writes it: one line per entry."""
    made = {
        "date": "2026-11-21T00:00:00Z",
        "command": "python3 tests/paper/ppo-router/derive.py",
        "notes": ["derived from the PPO router's paper; not measured"],
    }
    machine = {"cpu": "elsewhere (derived)", "cores": 0, "arch": "elsewhere", "os": "elsewhere"}
    parts = ['"schema": 2', f'"made": {line(made)}', f'"machine": {line(machine)}']
    for name, entries in cells.items():
        lines = ",\n".join(f"    {line(entry)}" for entry in entries)
        parts.append(f'"{name}": [\n{lines}\n  ]' if entries else f'"{name}": []')
    return "{\n  " + ",\n  ".join(parts) + "\n}\n"


def main():
    here = pathlib.Path(__file__).parent
    for batch in BATCHES:
        print(f"fluid bound, batches of {batch}: {fluid_bound(batch):.2f} %")
    here.joinpath("profile.json").write_text(text(profile()))
    MODELS["light"]["alone_us"] = LIGHT_US_FIGURE_3
    here.joinpath("light-10.json").write_text(text(profile()))
    MODELS["heavy"]["alone_us"] = HEAVY_US_HW_E
    here.joinpath("heavy-33.json").write_text(text(profile()))


if __name__ == "__main__":
    main()
