"""Profiles and recordings as columns."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._columns import Columns
from ._native import Error
from .traces import Trace

__all__ = ["Profile", "Recording", "read_profile", "read_recording"]


class Profile:
    """A profile: latencies, load times and accuracies of the variants on kinds of workers.

    `data` is the file as a dictionary; `docs/profiles.md` has its fields.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = dict(data)

    @property
    def tables(self) -> list[str]:
        """Names of its tables."""
        return [name for name, rows in self.data.items() if isinstance(rows, list)]

    def table(self, name: str) -> Columns:
        """A table such as `latencies`, `models` or `accuracies`, without fields that are lists.

        Missing numbers are NaN, missing names "".
        """
        if name not in self.tables:
            raise Error(f"table: {name!r}, must be one of {', '.join(self.tables)}")
        rows = self.data[name]
        fields = list(dict.fromkeys(field for row in rows for field in row))
        arrays: dict[str, Any] = {}
        names: dict[str, list[str]] = {}
        for field in fields:
            values = [row.get(field) for row in rows]
            if any(isinstance(value, (list, dict)) for value in values):
                continue
            if any(isinstance(value, str) for value in values):
                names[field] = list(dict.fromkeys(value for value in values if value is not None))
                places = {known: place for place, known in enumerate(names[field])}
                arrays[field] = np.array([places.get(value, -1) for value in values], dtype="i4")
            elif all(isinstance(value, int) for value in values):
                arrays[field] = np.array(values, dtype="i8")
            else:
                arrays[field] = np.array(values, dtype="f8")
        return Columns(arrays, names)

    def replaced(self, name: str, frame: Any) -> Profile:
        """With a table replaced by a DataFrame or another mapping of columns; fields that the columns lack
        are kept, row by row, if there are as many rows. Missing values leave their fields out.
        """
        if name not in self.tables:
            raise Error(f"table: {name!r}, must be one of {', '.join(self.tables)}")
        columns = {str(field): np.asarray(frame[field]).tolist() for field in frame}
        counts = {len(values) for values in columns.values()}
        if len(counts) != 1:
            raise Error(f"{name}: columns have {sorted(counts)} rows, must have the same number")
        [count] = counts
        for field, values in columns.items():
            for row, value in enumerate(values, 1):
                if isinstance(value, float) and np.isinf(value):
                    raise Error(f"{name}: row {row}: {field}: {value}, must be a finite number, or NaN where there is none")
        old = self.data[name] if len(self.data[name]) == count else [{}] * count
        rows = []
        for at, kept in enumerate(old):
            row = {field: value for field, value in kept.items() if field not in columns}
            given = {field: values[at] for field, values in columns.items()}
            row.update({field: _plain(value) for field, value in given.items() if not _is_missing(value)})
            rows.append(row)
        return Profile({**self.data, name: rows})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Checks the profile and writes it."""
        _native.write_profile(Path(path), json.dumps(self.data))


class Recording:
    """Windows and requests of a recording, from `record` in a pool or `switchyard simulate --record`."""

    def __init__(self, windows: Columns, trace: Trace | None, missing: int) -> None:
        self.windows = windows
        """A row per window, with the number of its run."""
        self.trace = trace
        """The requests that windows show; None without any."""
        self.missing = missing
        """Windows that the recorder left out because it could not keep up."""


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Reads and checks a profile."""
    return Profile(json.loads(_native.read_profile(Path(path))))


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """Reads a recording up to a block that is not complete."""
    buffers, text, missing = _native.read_recording(Path(path))
    rows = json.loads(text)
    trace = None
    if rows:
        fields = {name: [row.get(name) for row in rows] for name in ["app", "deadline_us", "length"]}
        known = {name: values for name, values in fields.items() if None not in values}
        trace = Trace([row["at_us"] for row in rows], **known, source=os.fspath(path))
    return Recording(Columns._of_buffers(buffers), trace, missing)


def _plain(value: Any) -> Any:
    """Whole numbers without a point: a column with missing values has none of them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and np.isnan(value))
