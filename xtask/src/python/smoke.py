"""The first steps of a user: a simulation from Python, and the same from the command."""

import json
import subprocess

import switchyard

result = switchyard.simulate(switchyard.reference_profile(), "poisson:300", ["fcfs", "sneakpeek"], seeds=3, seconds=5)
words = "simulate --policy fcfs --policy sneakpeek --workload poisson:300 --seeds 3 --seconds 5 --json -".split()
command = ["switchyard", *words, "--profile", switchyard.reference_profile()]
theirs = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
assert result.data["runs"] == theirs["runs"], "module and command disagree"
rows = result.requests().rows
arrivals = sum(sum(metrics["arrivals"]["by_seed"]) for metrics in result.summary().values())
assert rows == arrivals, (rows, arrivals)
for policy, metrics in result.summary().items():
    print(f"{policy}: {100 * metrics['violation_ratio']['mean']:.1f} % not in time, {rows} requests")
