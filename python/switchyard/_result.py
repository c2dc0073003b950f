"""Results of a simulation."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _plots
from ._columns import Columns
from ._native import Error, Simulation

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.axes import Axes


class Result:
    """Results of `simulate`.

    `summary` has means over the seeds. `requests`, `batches` and `windows` have a row for each of them: unless
    `keep` named them, the first call runs the simulation again, which gives the same each time.

    `plot` draws without another package; `plot_metric`, `plot_latency` and `plot_timeline` draw with matplotlib
    (`pip install switchyard[plot]`) into `ax`, or into a new figure, and return the axes.
    """

    def __init__(self, native: Simulation) -> None:
        self._native = native
        self._rows: dict[str, Columns] = {}

    @cached_property
    def data(self) -> dict[str, Any]:
        """The results as `switchyard simulate --json` writes them."""
        return json.loads(self.to_json())

    @property
    def policies(self) -> list[str]:
        """Names of the policies."""
        return list(dict.fromkeys(run["policy"] for run in self.data["runs"]))

    @property
    def points(self) -> list[str]:
        """Points of the sweep, such as `load=0.5`; without a sweep one, named ""."""
        return list(dict.fromkeys(run["point"] for run in self.data["runs"]))

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return self.data["meta"]["seeds"]

    @property
    def left_out(self) -> list[str]:
        """The arrivals of traces that `seconds` cuts off, a sentence per point."""
        return self.data["meta"]["left_out"]

    def summary(self, point: str | None = None, app: str | None = None) -> dict[str, dict[str, dict[str, Any]]]:
        """By policy and metric: `mean`, `half_width` of its 95 % confidence interval (None for one seed), and
        `by_seed`, the values in the order of the seeds (of all apps together only).

        `point` must be given for a sweep; `app` selects one app.
        """
        point = self._point(point)
        return {run["policy"]: self._metrics(run, app) for run in self.data["runs"] if run["point"] == point}

    def _point(self, point: str | None) -> str:
        points = self.points
        if point is None and len(points) == 1:
            return points[0]
        if point not in points:
            raise Error(f"point: {point!r}, must be one of {', '.join(map(repr, points))}")
        return point

    def _metrics(self, run: dict[str, Any], app: str | None) -> dict[str, dict[str, Any]]:
        estimates, by_seed = run["estimates"], run["by_seed"]
        if app is not None:
            apps = {part["name"]: part["estimates"] for part in run["apps"]}
            if app not in apps:
                raise Error(f"app: {app!r}, must be one of {', '.join(map(repr, apps))}")
            estimates, by_seed = apps[app], {}
        return {
            metric: {
                "mean": estimate["mean"],
                "half_width": estimate["half_width"],
                "by_seed": by_seed.get(metric),
            }
            for metric, estimate in estimates.items()
        }

    def compare(self, baseline: str) -> list[dict[str, Any]]:
        """The differences of all other policies from `baseline`, seed by seed; needs 3 seeds or more."""
        return json.loads(self._native.differences(baseline))

    def runs(self) -> Columns:
        """A row per point, policy and seed, with a column per metric; NaN where a run has none."""
        runs, seeds = self.data["runs"], self.seeds
        points, policies = self.points, self.policies
        metrics = list(dict.fromkeys(metric for run in runs for metric in run["by_seed"]))
        missing = [None] * len(seeds)
        values = {metric: [run["by_seed"].get(metric, missing) for run in runs] for metric in metrics}
        arrays = {
            "point": np.repeat([points.index(run["point"]) for run in runs], len(seeds)),
            "policy": np.repeat([policies.index(run["policy"]) for run in runs], len(seeds)),
            "seed": np.tile(np.array(seeds, dtype="u8"), len(runs)),
            **{metric: np.array(values[metric], dtype="f8").reshape(-1) for metric in metrics},
        }
        return Columns(arrays, {"point": points, "policy": policies})

    def requests(self) -> Columns:
        """A row per request, in the order of their ends."""
        return self._table("requests")

    def batches(self) -> Columns:
        """A row per batch, in the order of their starts."""
        return self._table("batches")

    def windows(self) -> Columns:
        """A row per window that was decided."""
        return self._table("windows")

    def _table(self, kind: str) -> Columns:
        if kind not in self._rows:
            self._rows[kind] = Columns._of_buffers(self._native.rows(kind))
        return self._rows[kind]

    def to_pandas(self) -> pandas.DataFrame:
        """`runs()` as a DataFrame."""
        return self.runs().to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """`runs()` as a table of Arrow."""
        return self.runs().to_arrow()

    def to_json(self) -> str:
        """The results as `switchyard simulate --json` writes them."""
        return self._native.json()

    def to_html(self) -> str:
        """A page of plots that needs no network."""
        return self._native.html()

    def plot(self) -> Plot:
        """Late requests and accuracy of each policy, along the sweep if there is one."""
        return Plot(self._native.svg())

    def plot_metric(self, metric: str = "violation_ratio", *, app: str | None = None, ax: Axes | None = None) -> Axes:
        """Means of a metric with their 95 % confidence intervals: a point per policy, or a line along the sweep."""
        return _plots.metric(self, metric, app, ax)

    def plot_latency(
        self, policy: str | None = None, *, point: str | None = None, app: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """The share of all requests that were answered within a time, over all seeds: by default of each policy."""
        return _plots.latency(self, policy, self._point(point), app, ax)

    def plot_timeline(
        self,
        policy: str | None = None,
        *,
        point: str | None = None,
        seed: int | None = None,
        seconds: tuple[float, float] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """The batches of each worker, by app and variant, and the windows that were decided, of one run: by default of
        the first policy and seed, and the first second.
        """
        return _plots.timeline(self, policy, self._point(point), seed, seconds or (0.0, 1.0), ax)

    def __repr__(self) -> str:
        names, seeds = ", ".join(self.policies), len(self.seeds)
        return f"Result({names}; {len(self.points)} points, {seeds} seeds)"


class Plot:
    """A figure as SVG; notebooks show it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        """Writes the SVG file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)
