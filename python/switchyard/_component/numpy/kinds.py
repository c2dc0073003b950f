"""Element types, and the type of a result as numpy 2 chooses it."""

import struct

# Kind: bits, and the least number of an integer.
INTEGERS = {"u1": (8, 0), "u4": (32, 0), "u8": (64, 0), "i4": (32, -(2**31)), "i8": (64, -(2**63))}
FLOATS = ("f4", "f8")

_NAMES = {
    "?": "?", "bool": "?", "bool_": "?", "uint8": "u1", "uint32": "u4", "uint64": "u8", "int32": "i4", "int64": "i8",
    "float32": "f4", "float64": "f8", "int": "i8", "float": "f8", bool: "?", int: "i8", float: "f8",
}

# Kinds of two arrays, in alphabetical order, whose result has neither a common kind nor one of the two.
_WIDER = {("i4", "u4"): "i8", ("i4", "u8"): "f8", ("i8", "u8"): "f8"}
# Booleans, unsigned integers, integers, floats.
_CLASSES = "?uif"
_RANKS = ["?", "u1", "i4", "u4", "i8", "u8", "f4", "f8"]


def kind_of(dtype):
    """The kind of a `dtype` argument."""
    kind = getattr(dtype, "kind_of_scalar", dtype)
    kind = _NAMES.get(kind, kind)
    if kind not in _RANKS:
        raise TypeError(f"dtype: {dtype!r}, must be one of bool, uint8, uint32, uint64, int32, int64, float32, float64")
    return kind


def common(first, second):
    """The kind that holds the values of both."""
    if first == second:
        return first
    pair = tuple(sorted([first, second]))
    if pair in _WIDER:
        return _WIDER[pair]
    low, high = sorted(pair, key=_RANKS.index)
    # A 32-bit float holds no 32-bit integer.
    return "f8" if high == "f4" and low not in ("?", "u1") else high


def is_same_kind(kind, stored):
    """Whether an array of kind `stored` takes results of `kind` in place: numpy's casting rule `same_kind`."""
    return _CLASSES.index(kind[0]) <= _CLASSES.index(stored[0])


def with_python(kind, value):
    """The kind of a result of an array or scalar with a number of Python, which does not widen it."""
    if isinstance(value, bool):
        return kind
    if isinstance(value, int):
        if kind in INTEGERS:
            bits, least = INTEGERS[kind]
            if not least <= value < least + 2**bits:
                raise OverflowError(f"Python integer {value} out of bounds for {kind}")
        return "i8" if kind == "?" else kind
    return kind if kind in FLOATS else "f8"


def fitted(kind, value):
    """A number as this kind stores it; integers wrap around."""
    if kind == "f8":
        return float(value)
    if kind == "f4":
        return rounded(float(value))
    if kind == "?":
        return bool(value)
    bits, least = INTEGERS[kind]
    return (int(value) - least) % 2**bits + least


def rounded(value):
    """A double as a 32-bit float has it."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
