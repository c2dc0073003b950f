"""Arrays of one dimension, and their elements, with the results of numpy 2."""

from .kinds import FLOATS, common, fitted, is_same_kind, kind_of, rounded, with_python
from .operations import ARITHMETIC, BITS, COMPARISONS, FLOAT_POWERS, SHIFTS, operation


def kind_of_value(value):
    """The kind of an array or scalar; None for a number of Python."""
    return value.kind if isinstance(value, (ndarray, generic)) else None


def joined_kind(one, other):
    """The common kind of two operands."""
    one_kind, other_kind = kind_of_value(one), kind_of_value(other)
    if one_kind and other_kind:
        return common(one_kind, other_kind)
    if one_kind:
        return with_python(one_kind, other)
    return with_python(other_kind, one)


def _binary(name, one, other):
    if isinstance(other, (list, tuple)):
        other = array(other)
    if isinstance(one, (list, tuple)):
        one = array(one)
    if not all(isinstance(value, (ndarray, generic, bool, int, float)) for value in (one, other)):
        return NotImplemented
    kinds = [kind_of_value(value) for value in (one, other)]
    if None in kinds and (name in COMPARISONS or name == "truediv"):
        # Takes any integer of Python, also one that the kind of the array does not hold.
        numbers = ["f8" if isinstance(value, float) else "i8" for value in (one, other)]
        known = kinds[0] or kinds[1]
        kind = "f8" if known != "f4" and float in (type(one), type(other)) else known
        one_kind, other_kind = (own or number for own, number in zip(kinds, numbers))
    else:
        kind = joined_kind(one, other)
        one_kind, other_kind = (own or kind for own in kinds)
    if name == "pow" and kind in FLOATS:
        if not isinstance(one, ndarray) or isinstance(other, ndarray) or _plain(other) not in FLOAT_POWERS:
            shown = ", ".join(map(str, FLOAT_POWERS))
            raise TypeError(f"pow: of floats is only array ** number with {shown} in a component; use *, or lists (tolist)")
    result, function = operation(name, one_kind, other_kind, kind)
    if not isinstance(one, ndarray) and not isinstance(other, ndarray):
        return generic(function(_plain(one), _plain(other)), result)
    ones, others = _values(one), _values(other)
    if isinstance(one, ndarray) and isinstance(other, ndarray):
        if len(ones) != len(others) and 1 not in (len(ones), len(others)):
            raise ValueError(f"operands have {len(ones)} and {len(others)} elements, must have as many")
        ones = ones * len(others) if len(ones) == 1 else ones
        others = others * len(ones) if len(others) == 1 else others
        return ndarray([function(a, b) for a, b in zip(ones, others)], result)
    if isinstance(one, ndarray):
        return ndarray([function(a, others) for a in ones], result)
    return ndarray([function(ones, b) for b in others], result)


def _plain(value):
    return value.value if isinstance(value, generic) else value


def _values(value):
    return value.values() if isinstance(value, ndarray) else _plain(value)


class _Operators:
    """Operators of arrays and scalars."""

    def __pos__(self):
        if self.kind == "?":
            raise TypeError("+: needs numbers")
        return self._each(lambda value: value, self.kind)

    def __neg__(self):
        if self.kind == "?":
            raise TypeError("-: needs numbers; of booleans use ~")
        kind = self.kind
        return self._each(lambda value: fitted(kind, -value), kind)

    def __abs__(self):
        kind = self.kind
        return self._each(lambda value: fitted(kind, abs(value)), kind)

    def __invert__(self):
        kind = self.kind
        if kind in FLOATS:
            raise TypeError("~: needs booleans or integers")
        return self._each(lambda value: not value if kind == "?" else fitted(kind, ~value), kind)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self


def _operator(name, is_reversed):
    def method(self, other):
        return _binary(name, other, self) if is_reversed else _binary(name, self, other)

    return method


def _in_place(name):
    def method(self, other):
        made = _binary(name, self, other)
        if made is NotImplemented:
            return made
        if not is_same_kind(made.kind, self.kind):
            raise TypeError(f"{name}: the result has the kind {made.kind}, which an array of {self.kind} does not take in place")
        if len(made) != len(self):
            raise ValueError(f"{name}: the result has {len(made)} elements, must have {len(self)} in place")
        self[:] = made
        return self

    return method


_BINARY = [*ARITHMETIC, *BITS, *SHIFTS]
for _name in _BINARY:
    setattr(_Operators, f"__{_name}__", _operator(_name, False))
    setattr(_Operators, f"__r{_name}__", _operator(_name, True))
for _name in COMPARISONS:
    setattr(_Operators, f"__{_name}__", _operator(_name, False))


class generic(_Operators):
    """An element of an array."""

    __slots__ = ("value", "kind")

    def __init__(self, value, kind):
        self.value, self.kind = value, kind

    def _each(self, function, kind):
        return generic(function(self.value), kind)

    def item(self):
        return self.value

    def astype(self, dtype):
        kind = kind_of(dtype)
        return generic(fitted(kind, self.value), kind)

    def __bool__(self):
        return bool(self.value)

    def __int__(self):
        return int(self.value)

    def __float__(self):
        return float(self.value)

    def __index__(self):
        if self.kind in FLOATS or self.kind == "?":
            raise TypeError(f"{self.kind}: is no index, must be an integer")
        return self.value

    def __round__(self, digits=None):
        return round(self.value, digits)

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return str(self.value)

    def __format__(self, spec):
        return format(self.value, spec)


class ndarray(_Operators):
    """An array of one dimension. A slice shares its elements."""

    __slots__ = ("kind", "_data", "_at")
    __hash__ = None

    def __init__(self, data, kind, at=None):
        self._data, self.kind = data, kind
        self._at = range(len(data)) if at is None else at

    def values(self):
        """Its elements as numbers of Python."""
        if len(self._at) == len(self._data) and self._at.step == 1:
            return self._data
        data = self._data
        return [data[at] for at in self._at]

    def _each(self, function, kind):
        return ndarray([function(value) for value in self.values()], kind)

    def __len__(self):
        return len(self._at)

    @property
    def size(self):
        return len(self._at)

    @property
    def shape(self):
        return (len(self._at),)

    def __iter__(self):
        return (generic(value, self.kind) for value in list(self.values()))

    def __contains__(self, value):
        return any(each == value for each in self)

    def __bool__(self):
        if len(self) != 1:
            raise ValueError("an array of several elements is neither true nor false; use any() or all()")
        return bool(self.values()[0])

    def __repr__(self):
        return f"array({self.tolist()})"

    def _rows(self, key):
        """The positions that a list or an array selects."""
        if isinstance(key, (list, tuple)):
            key = array(key) if len(key) else ndarray([], "i8")
        if key.kind == "?":
            if len(key) != len(self):
                raise IndexError(f"a mask of {len(key)} elements for {len(self)}, must have as many")
            return [at for at, is_chosen in zip(self._at, key.values()) if is_chosen]
        if key.kind in FLOATS:
            raise IndexError("an index of floats, must be integers or booleans")
        return [self._at[at] for at in key.values()]

    def __getitem__(self, key):
        if isinstance(key, slice):
            return ndarray(self._data, self.kind, self._at[key])
        if isinstance(key, (ndarray, list)):
            data = self._data
            return ndarray([data[at] for at in self._rows(key)], self.kind)
        return generic(self._data[self._at[key.__index__()]], self.kind)

    def __setitem__(self, key, value):
        if isinstance(self._data, tuple):
            raise ValueError("the array is read-only; use copy()")
        if isinstance(key, slice):
            rows = list(self._at[key])
        elif isinstance(key, (ndarray, list)):
            rows = self._rows(key)
        else:
            rows = [self._at[key.__index__()]]
        if isinstance(value, (ndarray, list, tuple)):
            values = list(array(value).values())
            values = values * len(rows) if len(values) == 1 else values
            if len(values) != len(rows):
                raise ValueError(f"{len(values)} values for {len(rows)} elements, must be as many")
        else:
            value = _plain(value)
            if isinstance(value, int) and kind_of_value(value) is None:
                with_python(self.kind, value)
            values = [value] * len(rows)
        for row, each in zip(rows, values):
            self._data[row] = fitted(self.kind, each)

    def tolist(self):
        return list(self.values())

    def copy(self):
        return ndarray(self.tolist(), self.kind)

    def astype(self, dtype):
        kind = kind_of(dtype)
        return self._each(lambda value: fitted(kind, value), kind)

    def item(self):
        [value] = self.values()
        return value

    def any(self):
        return generic(any(self.values()), "?")

    def all(self):
        return generic(all(self.values()), "?")

    def sum(self):
        values = self.values()
        if self.kind in FLOATS:
            return generic(_pairwise(values, rounded if self.kind == "f4" else float), self.kind)
        kind = "u8" if self.kind.startswith("u") else "i8"
        return generic(fitted(kind, sum(values)), kind)

    def mean(self):
        if self.kind == "f4":
            return generic(rounded(self.sum().value / len(self)), "f4")
        total = _pairwise([float(value) for value in self.values()], float)
        return generic(total / len(self), "f8")

    def cumsum(self):
        kind = self.kind if self.kind in FLOATS else "u8" if self.kind.startswith("u") else "i8"
        total, sums = fitted(kind, 0), []
        for value in self.values():
            total = fitted(kind, total + value)
            sums.append(total)
        return ndarray(sums, kind)

    def argmin(self):
        return self._first(min)

    def argmax(self):
        return self._first(max)

    def _first(self, choose):
        values = self.values()
        if not len(values):
            raise ValueError("an empty array has neither a least nor a greatest element")
        for at, value in enumerate(values):
            if value != value:
                return generic(at, "i8")
        return generic(values.index(choose(values)), "i8")

    def min(self):
        return self[self.argmin()]

    def max(self):
        return self[self.argmax()]

    def argsort(self, kind=None):
        if kind != "stable":
            raise TypeError('argsort: needs kind="stable" in a component; other kinds order equal elements at will')
        values = self.values()
        return ndarray(sorted(range(len(values)), key=lambda at: _ordered(values[at])), "i8")

    def sort(self):
        self[:] = self[self.argsort(kind="stable")]

    def fill(self, value):
        self[:] = value

    def nonzero(self):
        return (ndarray([at for at, value in enumerate(self.values()) if value], "i8"),)


for _name in _BINARY:
    setattr(ndarray, f"__i{_name}__", _in_place(_name))


def _ordered(value):
    """NaN is last."""
    return (1, 0) if value != value else (0, value)


def _pairwise(values, fit):
    """A sum in numpy's order of additions, to the same bits."""
    count = len(values)
    if count < 8:
        total = fit(-0.0) if count else 0.0
        for value in values:
            total = fit(total + value)
        return total
    if count <= 128:
        sums, whole = list(values[:8]), count - count % 8
        for begin in range(8, whole, 8):
            sums = [fit(total + value) for total, value in zip(sums, values[begin : begin + 8])]
        low = fit(fit(sums[0] + sums[1]) + fit(sums[2] + sums[3]))
        total = fit(low + fit(fit(sums[4] + sums[5]) + fit(sums[6] + sums[7])))
        for value in values[whole:]:
            total = fit(total + value)
        return total
    half = count // 2
    half -= half % 8
    return fit(_pairwise(values[:half], fit) + _pairwise(values[half:], fit))


def array(values, dtype=None):
    """An array of the values, which are copied."""
    if isinstance(values, ndarray):
        return values.copy() if dtype is None else values.astype(dtype)
    listed = list(values)
    if any(isinstance(value, (list, tuple, ndarray)) for value in listed):
        raise TypeError("array: nested, must have one dimension in a component")
    if dtype is None:
        kind = None
        for value in listed:
            own = kind_of_value(value) or kind_of(type(value))
            kind = own if kind is None else common(kind, own)
        kind = kind or "f8"
    else:
        kind = kind_of(dtype)
        for value in listed:
            if type(value) is int:
                with_python(kind, value)
    return ndarray([fitted(kind, _plain(value)) for value in listed], kind)

