#!/usr/bin/env python3
"""Writes spread.json and gpu.json from the measured profile.json.

    python3 tests/paper/sneakpeek/derive.py

spread.json: models as unlike as Figure 15 wants them.
For each application one model with the mean accuracy and latency of all its models (last exits), and
two that differ from it by a share, in accuracy and latency alike (section 6.4.5). Applications are
named by the share: `fall-10` has models at 90 %, 100 % and 110 % of the mean.

gpu.json: the models at the paper's time scale, on a device on which batching pays. Batch-1 latencies and load
times are profile.json's times SCALE; batches grow as on EdgeServing's RTX 3080. Figures 5, 6, 8, 9, 11a, 12a and 13a have
the paper's own windows, rates and deadlines on it, one window a run ("12 requests arriving uniformly over a
scheduling window"). test-bed-swap.toml has 1 MiB for 2.4 MB of models, so that a
change of model often loads it.

Numbers that the paper does not print:

- SCALE is 32: fitted to "a 2x increase in utility compared to LO-EDF" (fig05-gpu), which is therefore no
  prediction.
- 7 requests of each application per window of 10 ms of profile.json: fitted to the same (fig05). Figures 14 and 16a
  keep this rate; those of Figures 12b, 15 and 16b are not fitted.
- The deviation of deadlines is a fifth of the mean, the unit of d in eq. 12 is 100 ms, a window (fig13-units has others),
  the exact search takes up to 8 groups and 2,000 nodes on gpu.json, otherwise 4 and 300, so that the host cuts few
  windows: chosen. test-bed-uncut.toml has a longer budget for more groups and workers.
"""

import json
import pathlib

SHARES = [1, 5, 12]
SLO_US = 150_000
TIMES = ["p50_us", "p95_us", "p99_us"]
# Fitted: see above.
SCALE = 32
# Extra time of ten requests over one, as a share: BATCH_GROWTH of edgeserving/derive.py.
BATCH_GROWTH = 0.25
BATCHES = [1, 2, 4, 8, 16, 32]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def cells(measured):
    kind = measured["models"][0]["kind"]
    apps = sorted({model["app"] for model in measured["models"]})
    whole = {(model["app"], model["variant"]): model["stages"] for model in measured["models"]}
    out = {"apps": [], "models": [], "accuracies": [], "slicing": [], "latencies": []}
    for share in SHARES:
        for app in apps:
            name = f"{app}-{share}"
            out["apps"].append({"name": name, "slo_us": SLO_US})
            last = {}
            for row in measured["accuracies"]:
                if row["app"] == app and row["exit"] == "final":
                    last[row["variant"]] = row["accuracy"]
            runs = [
                row
                for row in measured["latencies"]
                if row["app"] == app
                and row.get("exit") == "final"
                and row["from_stage"] == 0
                and row["to_stage"] == whole[app, row["variant"]]
            ]
            batches = sorted({row["batch"] for row in runs})
            for variant, sign in (("low", -1), ("mean", 0), ("high", 1)):
                by = 1 + sign * share / 100
                of = {"app": name, "variant": variant}
                held = {"memory_bytes": 0, "load_us": 0, "stages": 1}
                out["models"].append({"kind": kind, **of, **held})
                accuracy = min(1.0, mean(last.values()) * by)
                known = {"source": "imported", "samples": 0, "accuracy": round(accuracy, 4)}
                out["accuracies"].append({**of, "exit": "final", **known})
                for batch in batches:
                    rows = [row for row in runs if row["batch"] == batch]
                    times = {t: round(mean(row[t] for row in rows) * by) for t in TIMES}
                    run = {"from_stage": 0, "to_stage": 1, "exit": "final", "batch": batch}
                    out["latencies"].append({"kind": kind, **of, **run, "samples": 0, **times})
    return out


def gpu(measured):
    """Latencies of one request times SCALE, with a GPU's growth over batches; loads times SCALE."""
    out = {"models": [], "accuracies": [], "slicing": [], "latencies": []}
    for model in measured["models"]:
        kept = ["kind", "app", "variant", "memory_bytes", "stages"]
        load_us = model["load_us"] * SCALE
        out["models"].append({**{name: model[name] for name in kept}, "load_us": load_us})
    out["accuracies"] = measured["accuracies"]
    for row in measured["latencies"]:
        if row["batch"] != 1:
            continue
        for batch in BATCHES:
            growth = SCALE * (1 + BATCH_GROWTH * (batch - 1) / 9)
            times = {time: round(row[time] * growth) for time in TIMES}
            out["latencies"].append({**row, **times, "batch": batch, "samples": 0})
    return out


def text(measured, entries_of):
    """As `switchyard profile` writes it: one line per entry."""
    def line(value):
        return json.dumps(value, separators=(",", ":"))

    made = {
        "date": measured["made"]["date"],
        "command": "python3 tests/paper/sneakpeek/derive.py",
        "notes": ["derived from profile.json; not measured"],
    }
    parts = ['"schema": 2', f'"made": {line(made)}', f'"machine": {line(measured["machine"])}']
    for name, entries in entries_of.items():
        lines = ",\n".join(f"    {line(entry)}" for entry in entries)
        parts.append(f'"{name}": [\n{lines}\n  ]' if entries else f'"{name}": []')
    return "{\n  " + ",\n  ".join(parts) + "\n}\n"


def main():
    here = pathlib.Path(__file__).parent
    measured = json.loads(here.joinpath("profile.json").read_text())
    here.joinpath("spread.json").write_text(text(measured, cells(measured)))
    here.joinpath("gpu.json").write_text(text(measured, gpu(measured)))


if __name__ == "__main__":
    main()
