"""Operators on two numbers of known kinds, element by element."""

import math
import operator

from .kinds import FLOATS, fitted


def divide(one, other):
    """As IEEE 754 divides: by zero too."""
    if other:
        return one / other
    if one == 0 or one != one:
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def _floor_divide(one, other):
    if other:
        return one // other
    return divide(one, other) if isinstance(one, float) else 0


def _modulo(one, other):
    if other:
        return one % other
    return math.nan if isinstance(one, float) else 0


def _power(one, other):
    if other < 0:
        raise ValueError("pow: an integer has a negative exponent, must be at least 0")
    # The result wraps around, in at most 64 bits.
    return pow(one, other, 2**64)


def _left_shift(one, other):
    return one << other if 0 <= other < 64 else 0


def _right_shift(one, other):
    return one >> (other if 0 <= other < 64 else 64)


ARITHMETIC = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": divide,
    "floordiv": _floor_divide,
    "mod": _modulo,
    "pow": _power,
}
BITS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
SHIFTS = {"lshift": _left_shift, "rshift": _right_shift}
COMPARISONS = {
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
}

# By exponents: numpy calculates other powers of floats by a library, whose last bits depend on the processor.
FLOAT_POWERS = {
    -1: lambda value: divide(1.0, value),
    0.5: lambda value: math.nan if value < 0 else math.sqrt(value),
    1: lambda value: value,
    2: lambda value: value * value,
}


def operation(name, one_kind, other_kind, kind):
    """The kind of the result, and a function of two numbers. `kind` is the common kind of the operands."""
    if name in COMPARISONS:
        compare = COMPARISONS[name]
        # Integers of any kinds are compared exactly.
        if kind in FLOATS and FLOATS[0] not in (one_kind, other_kind) and FLOATS[1] not in (one_kind, other_kind):
            return "?", compare
        if kind in FLOATS:
            return "?", lambda one, other: compare(fitted(kind, one), fitted(kind, other))
        return "?", compare
    if name in BITS:
        if kind in FLOATS:
            raise TypeError(f"{name}: needs booleans or integers")
        return kind, BITS[name]
    if (name in SHIFTS and kind == "?") or (name == "pow" and one_kind == "?"):
        raise TypeError(f"{name}: is not available for ? in a component; use astype(\"i8\")")
    if name in SHIFTS:
        if kind in FLOATS:
            raise TypeError(f"{name}: needs integers")
        shift = SHIFTS[name]
        return kind, lambda one, other: fitted(kind, shift(one, other))
    if name == "pow" and kind in FLOATS:
        return kind, lambda one, other: fitted(kind, FLOAT_POWERS[other](fitted(kind, one)))
    calculate = ARITHMETIC[name]
    if kind == "?":
        if name == "add":
            return kind, operator.or_
        if name == "mul":
            return kind, operator.and_
        if name == "sub":
            raise TypeError("sub: needs numbers; of booleans use ^")
    if name == "truediv" and kind not in FLOATS:
        return "f8", lambda one, other: divide(float(one), float(other))
    if kind == "?" or (kind == "f4" and name in ("floordiv", "mod")):
        raise TypeError(f"{name}: is not available for {kind} in a component; use astype(\"f8\")")
    if kind == "f8":
        return kind, lambda one, other: calculate(float(one), float(other))
    return kind, lambda one, other: fitted(kind, calculate(fitted(kind, one), fitted(kind, other)))
