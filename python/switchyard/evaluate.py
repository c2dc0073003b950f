"""Scores of policies for a search over their settings or their code.

    from switchyard.evaluate import Evaluator

    evaluator = Evaluator()
    score = evaluator.score(switchyard.Policy("yardmaster", settings={"punctuality": 1.0}))
    score.value, score.feedback
    evaluator.held_out_score(best)  # once, at the end

`evaluate` has the interface of OpenEvolve: an evaluation file needs one line,
`from switchyard.evaluate import evaluate`.

`python -m switchyard.evaluate` prints the seconds of a call.
"""

from __future__ import annotations

import importlib.util
import math
import os
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from . import _feedback
from ._native import CompiledPolicies, Error
from ._result import Result
from ._simulate import Policy, reference_profile, simulate
from .policy import PythonPolicy
from .traces import Trace

__all__ = ["HELD_OUT", "TRAIN", "Case", "Evaluator", "Score", "evaluate"]

# Student's t at 0.975 for 1 to 30 degrees of freedom.
_T_975 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]
_T_975 += [2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]

_METRICS = ["utility", "violation_ratio", "accuracy_expected", "latency_p99_ms"]


@dataclass(frozen=True)
class Case:
    """A workload on a test bed. `profile` is the reference profile by default; `options` are those of `simulate`,
    such as `config`, `workers` or `seconds`.
    """

    name: str
    workload: str | Mapping[str, Any] | Trace
    profile: str | os.PathLike[str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def _shipped(name: str, workload: str, seconds: float) -> Case:
    # A tenth of the shipped SLOs, for which the shipped models are fast.
    return Case(name, workload, options={"seconds": seconds, "service": "percentiles", "sweep": "deadline=0.1"})


TRAIN = (
    _shipped("steady", "poisson:4000", 0.25),
    _shipped("bursty", "gamma:5000,0.2", 0.2),
    _shipped("overload", "poisson:12000", 0.1),
)
"""The default training traces: two like workers, the shipped apps."""

HELD_OUT = (
    _shipped("phases", "mmpp:9000,1000,20,20", 0.5),
    _shipped("herd", "burst:2500,16x6400us", 0.5),
    _shipped("bursty-overload", "gamma:10000,0.3", 0.25),
    _shipped("slow", "poisson:2000", 0.5),
)
"""The default held-out traces: other arrivals and loads, and other seeds."""


@dataclass(frozen=True)
class Score:
    """Mean utility of an arrival over all cases, 0 to 1: accuracy, reduced by the penalty of a late answer."""

    value: float
    half_width: float | None
    """Half of the 95 % confidence interval over the seeds; None for one seed or a failed policy."""
    by_seed: tuple[float, ...]
    by_case: Mapping[str, float]
    metrics: Mapping[str, float]
    """Means over cases and seeds, and `faults`, the windows that the policy failed."""
    feedback: str
    """Faults and late requests by cause. Empty for a held-out score."""
    is_held_out: bool

    def minus(self, other: Score) -> tuple[float, float | None]:
        """The mean difference, seed by seed, and half of its 95 % confidence interval."""
        if len(self.by_seed) != len(other.by_seed) or self.is_held_out != other.is_held_out:
            raise Error("other: has other cases or seeds, must be a score of the same call of the same evaluator")
        return _estimate([own - theirs for own, theirs in zip(self.by_seed, other.by_seed)])


class Evaluator:
    """Scores policies on training traces, and apart from them on held-out ones.

    `train` and `held_out` are cases, or workloads as `simulate` takes them. `score` never runs a held-out trace.
    A policy is a name of a bundled one, a file `*.wasm`, a `Policy` with settings, a `PythonPolicy`, or a function
    that takes a `Catalog` and returns a callable from `Window` to `Plan`. Compiled code is kept, for all evaluators
    of a process.
    """

    def __init__(
        self,
        train: Iterable[Case | str | Mapping[str, Any] | Trace] = TRAIN,
        held_out: Iterable[Case | str | Mapping[str, Any] | Trace] = HELD_OUT,
        *,
        seeds: Iterable[int] = (1, 2),
        held_out_seeds: Iterable[int] = range(101, 111),
        threads: int = 0,
    ) -> None:
        self._train, self._held_out = _cases("train", train), _cases("held_out", held_out)
        self._seeds, self._held_out_seeds = list(seeds), list(held_out_seeds)
        self._threads = threads
        self._compiled = _compiled()
        self.held_out_calls = 0
        """Calls of `held_out_score`. A policy that is chosen by them is fitted to them."""

    def score(self, policy: str | Policy | PythonPolicy | Callable[..., Any]) -> Score:
        """The score on the training traces, with feedback. An exception of a policy in Python scores 0.

        Raises `switchyard.Error` if a policy, a trace or an option cannot be used, and `TypeError` for an unknown option.
        """
        return self._run(policy, self._train, self._seeds, is_held_out=False)

    def held_out_score(self, policy: str | Policy | PythonPolicy | Callable[..., Any]) -> Score:
        """The score on the held-out traces, without feedback: for the end of a search, not for its steps."""
        self.held_out_calls += 1
        return self._run(policy, self._held_out, self._held_out_seeds, is_held_out=True)

    def evaluate(self, program_path: str | os.PathLike[str]) -> Any:
        """Scores the program of a step of OpenEvolve: a component `*.wasm`, or a Python file with a function or
        class `make` that takes a `Catalog` (as `PythonPolicy.make`).

        Returns its metrics as a dictionary, with `combined_score`; where OpenEvolve is installed as its
        `EvaluationResult`, with the feedback as an artifact. A program that fails scores 0; a trace or an option
        that cannot be used raises, as in `score`.
        """
        try:
            score = self.score(_program(program_path))
        except Exception as error:
            # Raises if a case is wrong: then the program is not at fault.
            self._run("edf", self._train, self._seeds, is_held_out=True)
            score = _failed(error, self._seeds, is_held_out=False)
        metrics = {"combined_score": score.value, **score.metrics}
        try:
            from openevolve.evaluation_result import EvaluationResult
        except ImportError:
            return metrics
        return EvaluationResult(metrics=metrics, artifacts={"feedback": score.feedback})

    def _run(self, policy: Any, cases: list[Case], seeds: list[int], *, is_held_out: bool) -> Score:
        entered = _policy(policy)
        results: dict[str, Result] = {}
        for case in cases:
            profile = reference_profile() if case.profile is None else case.profile
            options = {**case.options, "seeds": seeds, "threads": self._threads, "compiled": self._compiled}
            # The rows of the feedback, without another run.
            options["keep"] = [] if is_held_out else ["requests", "windows"]
            try:
                results[case.name] = simulate(profile, case.workload, entered, **options)
            except Exception as error:
                if not isinstance(entered, PythonPolicy):
                    raise
                # Raises if the case is wrong: then the policy is not at fault.
                self._run("edf", [case], seeds, is_held_out=True)
                return _failed(error, seeds, is_held_out=is_held_out)
        return _score(results, is_held_out=is_held_out)


@cache
def _compiled() -> CompiledPolicies:
    """Compiled code of this process."""
    return CompiledPolicies()


_DEFAULT: list[Evaluator] = []


def evaluate(program_path: str | os.PathLike[str]) -> Any:
    """`Evaluator().evaluate`, with one evaluator for all calls."""
    if not _DEFAULT:
        _DEFAULT.append(Evaluator())
    return _DEFAULT[0].evaluate(program_path)


def _score(results: Mapping[str, Result], *, is_held_out: bool) -> Score:
    runs = {name: result.data["runs"][0] for name, result in results.items()}
    by_seed = [sum(values) / len(values) for values in zip(*(run["by_seed"]["utility"] for run in runs.values()))]
    value, half_width = _estimate(by_seed)
    metrics = {}
    for metric in _METRICS:
        means = [run["estimates"][metric]["mean"] for run in runs.values() if metric in run["estimates"]]
        if means:
            metrics[metric] = sum(means) / len(means)
    faults = {name: sum(sum(report["faults"].values()) for report in run["reports"]) for name, run in runs.items()}
    metrics["faults"] = float(sum(faults.values()))
    lines: list[str] = []
    if not is_held_out:
        late = {name: run["estimates"]["violation_ratio"]["mean"] for name, run in runs.items()}
        worst = max(late, key=late.__getitem__)
        for name, result in results.items():
            lines.append(_feedback.totals(name, result))
            if faults[name] or (name == worst and late[name] > 0):
                lines += _feedback.details(result)
    return Score(
        value=value,
        half_width=half_width,
        by_seed=tuple(by_seed),
        by_case={name: run["estimates"]["utility"]["mean"] for name, run in runs.items()},
        metrics=metrics,
        feedback="\n".join(lines),
        is_held_out=is_held_out,
    )


def _failed(error: BaseException, seeds: list[int], *, is_held_out: bool) -> Score:
    text = "".join(traceback.format_exception(error))
    return Score(
        value=0.0,
        half_width=None,
        by_seed=(0.0,) * len(seeds),
        by_case={},
        metrics={"utility": 0.0, "faults": 0.0},
        feedback="" if is_held_out else f"the policy failed:\n{text}",
        is_held_out=is_held_out,
    )


def _estimate(values: list[float]) -> tuple[float, float | None]:
    """The mean and half of its 95 % confidence interval, by Student's t."""
    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return mean, None
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    t = _T_975[count - 2] if count - 2 < len(_T_975) else 1.96
    return mean, t * deviation / math.sqrt(count)


def _cases(field_name: str, given: Iterable[Any]) -> list[Case]:
    cases = [case if isinstance(case, Case) else Case(_name(case, at), case) for at, case in enumerate(given, 1)]
    names = [case.name for case in cases]
    if not cases:
        raise Error(f"{field_name}: empty, must have at least one case")
    if len(set(names)) < len(names):
        raise Error(f"{field_name}: {', '.join(names)}: names must differ; give a Case another name")
    return cases


def _name(workload: Any, at: int) -> str:
    return workload if isinstance(workload, str) else f"trace-{at}"


def _policy(policy: Any) -> str | Policy | PythonPolicy:
    if isinstance(policy, (str, Policy, PythonPolicy)):
        return policy
    if isinstance(policy, Path):
        return str(policy)
    if callable(policy):
        return PythonPolicy(getattr(policy, "__name__", "python"), policy)
    raise Error(f"policy: {policy!r}, must be a name, a file *.wasm, a Policy, a PythonPolicy or a function")


def _program(path: str | os.PathLike[str]) -> str | Callable[..., Any]:
    name = os.fspath(path)
    if name.endswith(".wasm"):
        return name
    spec = importlib.util.spec_from_file_location("switchyard_program", name)
    if spec is None or spec.loader is None:
        raise Error(f"program_path: {name}, must end in .py or .wasm")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    make = getattr(module, "make", None)
    if not callable(make):
        raise Error(f"{name}: has no function or class `make`, which takes a Catalog")
    return make


def _main() -> None:
    from ._score_speed import main

    main()


if __name__ == "__main__":
    _main()
