"""The part of numpy that policies may use in a component: arrays of one dimension.

Results have the types and bits of numpy 2. A function that is missing here has no such promise.
"""

import builtins
import math
from bisect import bisect_left, bisect_right

from .arrays import array, generic, joined_kind, kind_of_value, ndarray
from .kinds import fitted, kind_of

inf, nan, newaxis = math.inf, math.nan, None


def _scalar_type(kind):
    class scalar:
        """Makes a number of this type; also a `dtype`."""

        kind_of_scalar = kind

        def __new__(cls, value=0):
            return generic(fitted(kind, value.item() if isinstance(value, generic) else value), kind)

    return scalar


uint8, uint32, uint64, int32, int64, float32, float64, bool_ = map(
    _scalar_type, ["u1", "u4", "u8", "i4", "i8", "f4", "f8", "?"]
)


def asarray(values, dtype=None):
    if isinstance(values, ndarray) and (dtype is None or kind_of(dtype) == values.kind):
        return values
    return array(values, dtype)


def frombuffer(values, dtype):
    """An array of a column, which the contract hands over as a list. It is read-only, as numpy's."""
    return ndarray(tuple(values), kind_of(dtype))


def zeros(count, dtype="f8"):
    return full(count, 0, dtype)


def ones(count, dtype="f8"):
    return full(count, 1, dtype)


def full(count, value, dtype=None):
    kind = kind_of_value(value) or kind_of(type(value)) if dtype is None else kind_of(dtype)
    return ndarray([fitted(kind, value)] * int(count), kind)


def zeros_like(values):
    return full(len(values), 0, asarray(values).kind)


def ones_like(values):
    return full(len(values), 1, asarray(values).kind)


def arange(*bounds):
    return ndarray(list(range(*(bound.__index__() for bound in bounds))), "i8")


def concatenate(arrays):
    arrays = [asarray(each) for each in arrays]
    kind = arrays[0].kind
    for each in arrays[1:]:
        kind = joined_kind(ndarray([], kind), each)
    return ndarray([fitted(kind, value) for each in arrays for value in each.values()], kind)


def flatnonzero(values):
    return asarray(values).nonzero()[0]


def count_nonzero(values):
    return len(flatnonzero(values))


def where(condition, *choices):
    if not choices:
        return asarray(condition).nonzero()
    one, other = choices
    kind = _kind(one, other)
    chosen = asarray(condition).values()
    ones, others = (_spread(each, len(chosen), kind) for each in (one, other))
    return ndarray([a if is_first else b for is_first, a, b in zip(chosen, ones, others)], kind)


def minimum(one, other):
    return _pairs(one, other, lambda a, b: a if a != a or (a <= b) else b)


def maximum(one, other):
    return _pairs(one, other, lambda a, b: a if a != a or (a >= b) else b)


def clip(values, least, most):
    return minimum(maximum(values, least), most)


def _kind(one, other):
    if kind_of_value(one) is None and kind_of_value(other) is None:
        return joined_kind(array([one]), array([other]))
    return joined_kind(one, other)


def _spread(value, count, kind):
    if isinstance(value, (ndarray, list, tuple)):
        return [fitted(kind, each) for each in asarray(value).values()]
    return [fitted(kind, value.item() if isinstance(value, generic) else value)] * count


def _pairs(one, other, choose):
    one, other = (array(each) if isinstance(each, (list, tuple)) else each for each in (one, other))
    kind = _kind(one, other)
    counts = [len(each) for each in (one, other) if isinstance(each, ndarray)]
    ones, others = (_spread(each, builtins.max(counts, default=1), kind) for each in (one, other))
    if len(ones) != len(others):
        raise ValueError(f"operands have {len(ones)} and {len(others)} elements, must have as many")
    values = [choose(a, b) for a, b in zip(ones, others)]
    return ndarray(values, kind) if counts else generic(values[0], kind)


def bincount(values, weights=None, minlength=0):
    rows = asarray(values).values()
    counts = [0 if weights is None else 0.0] * builtins.max([int(minlength), *(row + 1 for row in rows)])
    added = [1] * len(rows) if weights is None else [float(weight) for weight in asarray(weights).values()]
    for row, weight in zip(rows, added):
        counts[row] += weight
    return ndarray(counts, "i8" if weights is None else "f8")


def searchsorted(values, sought, side="left"):
    find = {"left": bisect_left, "right": bisect_right}[side]
    listed = asarray(values).values()
    if isinstance(sought, (ndarray, list, tuple)):
        return ndarray([find(listed, each) for each in asarray(sought).values()], "i8")
    return generic(find(listed, sought.item() if isinstance(sought, generic) else sought), "i8")


def sort(values):
    values = asarray(values)
    return values[values.argsort(kind="stable")]


def argsort(values, kind=None):
    return asarray(values).argsort(kind=kind)


def unique(values):
    ordered = sort(values).values()
    kept = [value for at, value in enumerate(ordered) if at == 0 or value != ordered[at - 1]]
    return ndarray(kept, asarray(values).kind)


def isin(values, allowed):
    members = set(asarray(allowed).values())
    return ndarray([value in members for value in asarray(values).values()], "?")


def cumsum(values):
    return asarray(values).cumsum()


def sum(values):
    return asarray(values).sum()


def mean(values):
    return asarray(values).mean()


def any(values):
    return asarray(values).any()


def all(values):
    return asarray(values).all()


def min(values):
    return asarray(values).min()


def max(values):
    return asarray(values).max()


def argmin(values):
    return asarray(values).argmin()


def argmax(values):
    return asarray(values).argmax()


def abs(values):
    return asarray(values).__abs__() if isinstance(values, (ndarray, list)) else values.__abs__()


def isnan(values):
    values = asarray(values)
    return ndarray([value != value for value in values.values()], "?")
