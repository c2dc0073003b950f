#!/usr/bin/env python3
"""Writes spread.json: models as unlike as Figure 15 wants them, from the measured profile.json.

    python3 tests/paper/sneakpeek/derive.py

For each application one model with the mean accuracy and latency of all its models (last exits), and
two that differ from it by a share, in accuracy and latency alike (section 6.4.5). Applications are
named by the share: `fall-10` has models at 90 %, 100 % and 110 % of the mean.
"""

import json
import pathlib

SHARES = [1, 5, 12]
SLO_US = 150_000
TIMES = ["p50_us", "p95_us", "p99_us"]


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


def text(measured):
    """As `switchyard profile` writes it: one line per entry."""
    def line(value):
        return json.dumps(value, separators=(",", ":"))

    made = {
        "date": measured["made"]["date"],
        "command": "python3 tests/paper/sneakpeek/derive.py",
        "notes": ["derived from profile.json; not measured"],
    }
    parts = ['"schema": 2', f'"made": {line(made)}', f'"machine": {line(measured["machine"])}']
    for name, entries in cells(measured).items():
        lines = ",\n".join(f"    {line(entry)}" for entry in entries)
        parts.append(f'"{name}": [\n{lines}\n  ]' if entries else f'"{name}": []')
    return "{\n  " + ",\n  ".join(parts) + "\n}\n"


def main():
    here = pathlib.Path(__file__).parent
    measured = json.loads(here.joinpath("profile.json").read_text())
    here.joinpath("spread.json").write_text(text(measured))


if __name__ == "__main__":
    main()
