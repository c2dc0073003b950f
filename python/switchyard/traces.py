"""Arrivals that others have recorded, as workloads.

    trace = switchyard.traces.read_burstgpt("BurstGPT_1.csv")
    trace = trace.renamed({"ChatGPT": "heart", "GPT-4": "fall"})
    switchyard.simulate(profile, trace, "sneakpeek")

Every reader names the file, the row (from 1, the first one after the heading) and the column that is wrong.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np

from ._columns import Columns
from ._native import Error

if TYPE_CHECKING:
    import pandas

__all__ = ["Trace", "read_azure_functions", "read_azure_llm", "read_burstgpt", "read_csv", "read_mooncake", "read_rates"]

_UNITS_US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}

# Exact in a double, and 285 years.
_US_MAX = 2**53

_MINUTES_A_DAY = 1_440

# Of the simulator.
_UNKNOWN_APP = re.compile(r"unknown app `(?P<app>.*)`; the catalog has (?P<known>.*)")


class Trace:
    """Requests in the order of their arrivals, with apps, deadlines and lengths if they are known."""

    def __init__(
        self,
        at_us: Iterable[int],
        app: Sequence[str] | None = None,
        deadline_us: Iterable[int] | None = None,
        length: Iterable[int] | None = None,
        *,
        source: str = "trace",
    ) -> None:
        """`at_us` are arrivals in ascending order; `deadline_us` times from arrival to deadline; `length` such
        as the tokens of a text. `source` stands in messages.
        """
        self.source = source
        self.at_us = _whole(source, "at_us", at_us, 0)
        if len(self.at_us) == 0:
            raise Error(f"{source}: has no request, must have at least one")
        late = np.flatnonzero(np.diff(self.at_us) < 0)
        if len(late):
            row = int(late[0]) + 1
            found, before = self.at_us[row], self.at_us[row - 1]
            raise Error(f"{source}: row {row + 1}: at_us: {found}, must be at least {before}, that of the row before")
        self.app = None if app is None else _names(source, app)
        self.deadline_us = None if deadline_us is None else _whole(source, "deadline_us", deadline_us, 1)
        self.length = None if length is None else _whole(source, "length", length, 1, 2**32 - 1)
        for name in ["app", "deadline_us", "length"]:
            column = getattr(self, name)
            if column is not None and len(column) != len(self.at_us):
                raise Error(f"{source}: {name}: {len(column)} rows, must be {len(self.at_us)}, as many as arrivals")

    def __len__(self) -> int:
        return len(self.at_us)

    def __repr__(self) -> str:
        return f"Trace({self.source}: {len(self)} requests in {self.at_us[-1] / 1e6:.1f} s)"

    def renamed(self, apps: str | Mapping[str, str] | Callable[[str], str]) -> Trace:
        """With other apps: one for all requests, or by the name of each."""
        if isinstance(apps, str):
            return self._with(app=[apps] * len(self))
        if self.app is None:
            raise Error(f"{self.source}: has no column of apps; name one app for all requests")
        rename = _renamer(self.source, self.app, apps) if isinstance(apps, Mapping) else apps
        return self._with(app=[rename(name) for name in self.app])

    def scaled(self, factor: float) -> Trace:
        """With gaps divided by a factor: 2 makes twice the load."""
        if not (factor > 0 and np.isfinite(factor)):
            raise Error(f"factor: {factor}, must be a positive number")
        return self._with(at_us=np.round(self.at_us / factor))

    def first(self, seconds: float) -> Trace:
        """Without the requests that arrive later."""
        if not seconds > 0:
            raise Error(f"seconds: {seconds}, must be a positive number")
        count = int(np.searchsorted(self.at_us, seconds * 1e6))
        cut = {name: None if column is None else column[:count] for name, column in self._columns().items()}
        return Trace(**cut, source=self.source)

    def _columns(self) -> dict[str, Any]:
        return {"at_us": self.at_us, "app": self.app, "deadline_us": self.deadline_us, "length": self.length}

    def _with(self, **changed: Any) -> Trace:
        return Trace(**{**self._columns(), **changed}, source=self.source)

    def to_workload(self) -> dict[str, Any]:
        """The workload as a dictionary. Without apps, requests are spread over all apps of the simulation."""
        if self.app is None:
            for name in ["deadline_us", "length"]:
                if getattr(self, name) is not None:
                    raise Error(f"{self.source}: {name}: needs apps; name one with `renamed(\"APP\")`")
            return _workload({"arrivals_us": self.at_us.tolist()})
        rows = [{"at_us": at_us, "app": app} for at_us, app in zip(self.at_us.tolist(), self.app)]
        for name in ["deadline_us", "length"]:
            if getattr(self, name) is not None:
                for row, value in zip(rows, getattr(self, name).tolist()):
                    row[name] = value
        return _workload({"requests": rows})

    @contextmanager
    def named(self) -> Iterator[None]:
        """An error about an app of this trace gets the row that has it."""
        try:
            yield
        except Error as error:
            found = _UNKNOWN_APP.search(str(error))
            if found is None or self.app is None or found["app"] not in self.app:
                raise
            row = self.app.index(found["app"]) + 1
            way_out = "rename them with `renamed({...})`"
            raise Error(f"{self.source}: row {row}: app: {found['app']!r}, must be one of {found['known']}; {way_out}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the workload, for `switchyard simulate --workload PATH`; the name must end in `.json`."""
        if not os.fspath(path).endswith(".json"):
            raise Error(f"path: {os.fspath(path)}, must end in .json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.to_workload(), file)

    def to_columns(self) -> Columns:
        """Its columns."""
        known = {name: column for name, column in self._columns().items() if column is not None}
        names = {}
        if self.app is not None:
            listed, codes = np.unique(self.app, return_inverse=True)
            known["app"], names["app"] = codes.astype("i4"), listed.tolist()
        return Columns(known, names)

    def to_pandas(self) -> pandas.DataFrame:
        """Its columns as a DataFrame."""
        return self.to_columns().to_pandas()

    @classmethod
    def of_frame(
        cls,
        frame: Any,
        time: str = "at_us",
        unit: str = "us",
        app: str | None = None,
        deadline_us: str | None = None,
        length: str | None = None,
    ) -> Trace:
        """From a DataFrame or another mapping of columns; the first request arrives at 0.

        `time`, `app`, `deadline_us` and `length` are names of columns.
        """

        def column(name: str) -> Any:
            try:
                return frame[name]
            except KeyError:
                raise Error(f"frame: has no column `{name}`, must be one of {', '.join(map(str, frame))}") from None

        def optional(name: str | None) -> Any:
            return None if name is None else column(name)

        times = np.asarray(column(time))
        scale = _scale(unit)
        if times.dtype.kind == "M":
            missing = np.flatnonzero(np.isnat(times))
            if len(missing):
                raise Error(f"frame: row {int(missing[0]) + 1}: {time}: NaT, must be a date")
            times, scale = times.astype("datetime64[ns]").astype("i8"), 1e-3
        at_us = _since_first("frame", time, times, scale)
        return cls(at_us, optional(app), optional(deadline_us), optional(length), source="frame")


def read_csv(
    path: str | os.PathLike[str],
    time: str = "timestamp",
    unit: str = "s",
    app: str | None = None,
    deadline_us: str | None = None,
    length: str | None = None,
) -> Trace:
    """A CSV file with a row per request, ascending; the first one arrives at 0.

    `time` is the column of arrivals, in `unit` (s, ms, us or ns) or as dates of ISO 8601; the others are
    columns that a trace may have.
    """
    rows = _Table(path, [name for name in [time, app, deadline_us, length] if name is not None])
    times = _since_first(rows.source, time, rows.times(time), _scale(unit))
    lengths = None if length is None else rows.numbers(length)
    deadlines = None if deadline_us is None else rows.numbers(deadline_us)
    return Trace(times, None if app is None else rows.texts(app), deadlines, lengths, source=rows.source)


def read_burstgpt(path: str | os.PathLike[str], failed: bool = False) -> Trace:
    """BurstGPT: `Timestamp` in seconds, the model as app, the tokens of the request as length.

    Requests without a response are left out unless `failed`.
    """
    rows = _Table(path, ["Timestamp", "Model", "Request tokens", "Response tokens"])
    times = _since_first(rows.source, "Timestamp", rows.numbers("Timestamp"), 1e6)
    tokens = rows.numbers("Request tokens")
    kept = (tokens > 0) & ((rows.numbers("Response tokens") > 0) | failed)
    models = [model for model, keep in zip(rows.texts("Model"), kept) if keep]
    return Trace(times[kept], models, None, tokens[kept], source=rows.source)


def read_azure_llm(path: str | os.PathLike[str]) -> Trace:
    """Azure LLM inference: `TIMESTAMP` as a date, the tokens of the context as length; name an app with
    `renamed`.
    """
    rows = _Table(path, ["TIMESTAMP", "ContextTokens"])
    times = _since_first(rows.source, "TIMESTAMP", rows.times("TIMESTAMP"), 1e6)
    return Trace(times, None, None, rows.numbers("ContextTokens"), source=rows.source)


def read_azure_functions(path: str | os.PathLike[str], functions: int | None = None) -> Trace | dict[str, Any]:
    """Azure Functions, of 2021 or 2019.

    Of 2021 (`app`, `func`, `end_timestamp`, `duration`): a `Trace` whose requests arrive when their functions
    began, with the function as app. Of 2019 (`HashFunction`, and invocations per minute in columns `1` to
    `1440`): the rates of the `functions` most invoked ones together, or of all, as a workload.
    """
    if "end_timestamp" in _Table.heading(path):
        rows = _Table(path, ["func", "end_timestamp", "duration"])
        begun = rows.numbers("end_timestamp") - rows.numbers("duration")
        order = np.argsort(begun, kind="stable")
        times = _since_first(rows.source, "end_timestamp", begun[order], 1e6)
        names = rows.texts("func")
        return Trace(times, [names[at] for at in order], source=rows.source)
    minutes = [str(minute) for minute in range(1, _MINUTES_A_DAY + 1)]
    rows = _Table(path, ["HashFunction", *minutes])
    counts = np.array([rows.numbers(minute, least=0) for minute in minutes])
    if functions is not None:
        if functions < 1:
            raise Error(f"functions: {functions}, must be at least 1")
        counts = counts[:, np.argsort(-counts.sum(axis=0), kind="stable")[:functions]]
    rates = counts.sum(axis=1) / 60
    return _workload({"interval_s": 60, "qps": rates.tolist()})


def read_rates(path: str | os.PathLike[str], column: str | None = None, interval_s: float = 1.0) -> dict[str, Any]:
    """Requests per interval, such as those of Twitter's traces: a number per line, or a column of a CSV file. Returns
    their rates as a workload, whose arrivals are spread over all apps of the simulation.
    """
    if not (interval_s > 0 and np.isfinite(interval_s)):
        raise Error(f"interval_s: {interval_s}, must be a positive number")
    if column is None:
        rows = _Table.of_lines(path, "requests")
        counts = rows.numbers("requests", least=0)
    else:
        rows = _Table(path, [column])
        counts = rows.numbers(column, least=0)
    if not counts.any():
        raise Error(f"{rows.source}: has no request, must have at least one")
    return _workload({"interval_s": interval_s, "qps": (counts / interval_s).tolist()})


def read_mooncake(path: str | os.PathLike[str]) -> Trace:
    """Mooncake: a JSON object per line with `timestamp` in milliseconds and `input_length` in tokens; name an
    app with `renamed`.
    """
    source = os.fspath(path)
    times, lengths = [], []
    for row, line in enumerate(_lines(path), 1):
        try:
            request = json.loads(line)
        except json.JSONDecodeError as error:
            raise Error(f"{source}: row {row}: is not JSON: {error}") from None
        for field, column in [("timestamp", times), ("input_length", lengths)]:
            value = request.get(field) if isinstance(request, dict) else None
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise Error(f"{source}: row {row}: {field}: {value!r}, must be a number of at least 0")
            column.append(value)
    at_us = _since_first(source, "timestamp", np.array(times, dtype="f8"), 1e3)
    return Trace(at_us, None, None, lengths, source=source)


class _Table:
    """The columns of a CSV file with a heading."""

    def __init__(self, path: str | os.PathLike[str], columns: list[str]) -> None:
        self.source = os.fspath(path)
        heading = self.heading(path)
        for name in columns:
            if name not in heading:
                shown = ", ".join(heading[:12])
                raise Error(f"{self.source}: has no column `{name}`; its columns are {shown}")
        places = {name: heading.index(name) for name in columns}
        self._columns: dict[str, list[str]] = {name: [] for name in columns}
        rows = csv.reader(_lines(path))
        next(rows)
        for number, row in enumerate(rows, 1):
            if len(row) != len(heading):
                raise Error(f"{self.source}: row {number}: {len(row)} fields, must be {len(heading)}")
            for name, place in places.items():
                self._columns[name].append(row[place])

    @classmethod
    def of_lines(cls, path: str | os.PathLike[str], name: str) -> _Table:
        """A file with one value per line, without a heading."""
        made = cls.__new__(cls)
        made.source = os.fspath(path)
        made._columns = {name: [line.strip() for line in _lines(path) if line.strip()]}
        return made

    @staticmethod
    def heading(path: str | os.PathLike[str]) -> list[str]:
        heading = next(csv.reader(_lines(path)), [])
        return [name.strip().lstrip("\ufeff") for name in heading]

    def texts(self, name: str) -> list[str]:
        for row, text in enumerate(self._columns[name], 1):
            if not text:
                raise Error(f"{self.source}: row {row}: {name}: is empty, must be a name")
        return self._columns[name]

    def numbers(self, name: str, least: float | None = None) -> np.ndarray:
        def number(row: int, text: str) -> float:
            try:
                value = float(text)
            except ValueError:
                value = float("nan")
            if not np.isfinite(value) or (least is not None and value < least):
                wanted = "a number" if least is None else f"a number of at least {least}"
                raise Error(f"{self.source}: row {row}: {name}: {text!r}, must be {wanted}")
            return value

        return np.array([number(row, text) for row, text in enumerate(self._columns[name], 1)], dtype="f8")

    def times(self, name: str) -> np.ndarray:
        """Numbers, or dates as seconds."""
        texts = self._columns[name]
        if not texts or not any(mark in texts[0] for mark in "-:"):
            return self.numbers(name, least=0)

        def seconds(row: int, text: str) -> float:
            try:
                # Digits beyond microseconds are left out; older Pythons refuse them.
                whole, _, fraction = text.strip().replace("Z", "+00:00").partition(".")
                digits = fraction[: len(fraction) - len(fraction.lstrip("0123456789"))]
                date = datetime.fromisoformat(whole + fraction[len(digits) :])
            except ValueError:
                raise Error(f"{self.source}: row {row}: {name}: {text!r}, must be a date of ISO 8601") from None
            epoch = datetime(1970, 1, 1, tzinfo=timezone.utc if date.tzinfo else None)
            return (date - epoch).total_seconds() + float(f"0.{digits or 0}")

        return np.array([seconds(row, text) for row, text in enumerate(texts, 1)], dtype="f8")


def _lines(path: str | os.PathLike[str]) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            yield from file
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"{os.fspath(path)}: {error}") from None


def _workload(trace: dict[str, Any]) -> dict[str, Any]:
    return {"streams": [{"arrivals": {"trace": trace}}]}


def _names(source: str, app: Iterable[Any]) -> list[str]:
    names = []
    for row, name in enumerate(app, 1):
        # NaN is no name, and the only value that differs from itself.
        if name is None or name != name or name == "":
            raise Error(f"{source}: row {row}: app: {name!r}, must be a name")
        names.append(str(name))
    return names


def _scale(unit: str) -> float:
    if unit not in _UNITS_US:
        raise Error(f"unit: {unit!r}, must be one of {', '.join(_UNITS_US)}")
    return _UNITS_US[unit]


def _since_first(source: str, name: str, times: np.ndarray, scale: float) -> np.ndarray:
    """Microseconds since the first row. The order of the rows is checked here, in the file's own unit."""
    times = _finite(source, name, times)
    late = np.flatnonzero(np.diff(times) < 0)
    if len(late):
        row = int(late[0]) + 1
        raise Error(f"{source}: row {row + 1}: {name}: {times[row]}, must be at least {times[row - 1]}, that of the row before")
    return np.round((times - times[:1]) * scale)


def _finite(source: str, name: str, values: Iterable[Any]) -> np.ndarray:
    listed = np.asarray(values if isinstance(values, np.ndarray) else list(values))
    if listed.ndim != 1:
        raise Error(f"{source}: {name}: has {listed.ndim} dimensions, must have 1")
    try:
        numbers = listed if listed.dtype.kind in "iuf" else listed.astype("f8")
    except (TypeError, ValueError):
        raise Error(f"{source}: {name}: {listed.dtype}, must be numbers") from None
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        row = int(wrong[0])
        raise Error(f"{source}: row {row + 1}: {name}: {numbers[row]}, must be a number")
    return numbers


def _whole(source: str, name: str, values: Iterable[Any], least: int, most: int = _US_MAX) -> np.ndarray:
    numbers = _finite(source, name, values)
    wrong = np.flatnonzero((numbers < least) | (numbers > most) | (np.floor(numbers) != numbers))
    if len(wrong):
        row = int(wrong[0])
        raise Error(f"{source}: row {row + 1}: {name}: {numbers[row]}, must be a whole number from {least} to {most}")
    return numbers.astype("i8")


def _renamer(source: str, names: list[str], apps: Mapping[str, str]) -> Callable[[str], str]:
    for row, name in enumerate(names, 1):
        if name not in apps:
            raise Error(f"{source}: row {row}: app: {name!r}, must be one of {', '.join(map(repr, apps))}")
    return lambda name: apps[name]
