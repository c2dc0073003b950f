"""Tables of numpy columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Columns(Mapping[str, np.ndarray]):
    """Columns of equal lengths, by name. Units are in the names.

    A column of names (such as `policy`) is kept as positions in a list: `codes` and `names` give both,
    `columns["policy"]` an array of strings, with "" where there is none.
    """

    def __init__(self, arrays: Mapping[str, Any], names: Mapping[str, list[str]] | None = None) -> None:
        self._arrays = {name: np.asarray(values) for name, values in arrays.items()}
        self._names = dict(names or {})

    @classmethod
    def _of_buffers(cls, buffers: list[tuple[str, str, bytearray, list[str] | None]]) -> Columns:
        arrays = {name: np.frombuffer(buffer, dtype=kind) for name, kind, buffer, _ in buffers}
        return cls(arrays, {name: names for name, _, _, names in buffers if names is not None})

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            raise KeyError(f"column: {name!r}, must be one of {', '.join(self._arrays)}")
        values = self._arrays[name]
        if name not in self._names:
            return values
        # The last one is that of position -1.
        return np.array([*self._names[name], ""])[values]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return next((len(values) for values in self._arrays.values()), 0)

    def codes(self, name: str) -> np.ndarray:
        """The positions of a column of names in `names(name)`, -1 where there is none."""
        self.names(name)
        return self._arrays[name]

    def names(self, name: str) -> list[str]:
        """The list of names of a column."""
        if name not in self._names:
            raise KeyError(f"column: {name!r}, must be one of {', '.join(self._names)}, which have names")
        return self._names[name]

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame; columns of names are categorical. Needs pandas (`pip install switchyard[pandas]`)."""
        import pandas

        def column(name: str) -> Any:
            if name in self._names:
                return pandas.Categorical.from_codes(self._arrays[name], self._names[name])
            return self._arrays[name]

        return pandas.DataFrame({name: column(name) for name in self._arrays})

    def to_arrow(self) -> pyarrow.Table:
        """A table of Arrow; columns of names are dictionaries. Needs pyarrow (`pip install switchyard[arrow]`)."""
        import pyarrow

        def column(name: str) -> Any:
            values = self._arrays[name]
            if name in self._names:
                codes = pyarrow.array(values, mask=values < 0)
                return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(self._names[name], pyarrow.string()))
            return pyarrow.array(values)

        return pyarrow.table({name: column(name) for name in self._arrays})

    def __repr__(self) -> str:
        return f"Columns({self.rows} rows: {', '.join(self._arrays)})"
