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


ARITHMETIC = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": divide,
    "floordiv": _floor_divide,
    "mod": _modulo,
}
BITS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
COMPARISONS = {
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
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
