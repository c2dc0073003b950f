"""The arrays of components have the values, types and bits of numpy."""

import importlib.util
import itertools
import operator
import struct
import sys
import unittest
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

import switchyard

FOLDER = Path(switchyard.__file__).parent / "_component" / "numpy"


def component_numpy():
    spec = importlib.util.spec_from_file_location(
        "component_numpy", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["component_numpy"] = module
    spec.loader.exec_module(module)
    return module


own = component_numpy()


def component_native():
    """The component's module `switchyard._native`, without the bindings of the contract."""
    bindings = {name: mock.MagicMock() for name in ["wit_world", "wit_world.exports", "wit_world.exports.scheduling"]}
    file = FOLDER.parent / "switchyard" / "_native.py"
    spec = importlib.util.spec_from_file_location("component_native", file)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, bindings):
        spec.loader.exec_module(module)
    return module


KINDS = ["?", "u1", "u4", "u8", "i4", "i8", "f4", "f8"]


def columns(random, kind, count):
    """The same values as an array of numpy and as one of a component."""
    if kind == "?":
        values = random.integers(0, 2, count).astype("?")
    elif kind in ("f4", "f8"):
        values = (random.normal(size=count) * 10.0 ** random.integers(-3, 6, count)).astype(kind)
        values[random.random(count) < 0.1] = 0
    else:
        bits = random.integers(1, 8 * np.dtype(kind).itemsize + 1, count).astype("u8")
        values = (random.integers(0, 2**64 - 1, count, dtype="u8") >> (np.uint64(64) - bits)).astype(kind)
    return values, own.frombuffer(values.tolist(), kind).copy()


def bits(value):
    """A comparable form: kind and bits."""
    if isinstance(value, (np.ndarray, np.generic)):
        kind = value.dtype.kind + str(value.dtype.itemsize)
        kind, value = ("?" if kind == "b1" else kind), value.tolist()
    elif isinstance(value, (own.ndarray, own.generic)):
        kind, value = value.kind, value.tolist() if isinstance(value, own.ndarray) else value.item()
    else:
        kind = "python"
    listed = value if isinstance(value, list) else [value]
    return kind, ["nan" if each != each else struct.pack("d", each) if isinstance(each, float) else each for each in listed]


class SameAsNumpy(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)
        self.random = np.random.default_rng(7)

    def same(self, function, *pairs):
        theirs, ours = (self.outcome(function, module, [pair[at] for pair in pairs]) for at, module in enumerate([np, own]))
        if isinstance(ours, TypeError) and "component" in str(ours):
            return  # Refused, with the reason.
        if isinstance(theirs, Exception) or isinstance(ours, Exception):
            self.assertTrue(isinstance(theirs, Exception) and isinstance(ours, Exception), f"{theirs!r} {ours!r} {pairs}")
        else:
            self.assertEqual(bits(theirs), bits(ours), pairs)

    @staticmethod
    def outcome(function, module, values):
        try:
            return function(module, *values)
        except (TypeError, ValueError, OverflowError, IndexError) as error:
            return error

    def test_operators(self):
        operators = {name: name for name in "+ - * / // % ** << >> & | ^ < <= == != > >=".split()}
        functions = {name: eval(f"lambda _, one, other: one {name} other") for name in operators}
        functions |= {f"divmod {at}": eval(f"lambda _, one, other: divmod(one, other)[{at}]") for at in (0, 1)}
        for one, other in itertools.product(KINDS, KINDS):
            pairs = columns(self.random, one, 40), columns(self.random, other, 40)
            for name, function in functions.items():
                with self.subTest(f"{one} {name} {other}"):
                    self.same(function, *pairs)
                    self.same(function, [each[3] for each in pairs[0]], pairs[1])
                    self.same(function, [each[3] for each in pairs[0]], [each[5] for each in pairs[1]])
        for one, number in itertools.product(KINDS, [0, 1, 2, 3, -1, -2, 63, 255, 2**40, 0.0, 0.1, 0.5, 2.5, True]):
            pair = columns(self.random, one, 40)
            for name, function in functions.items():
                with self.subTest(f"{one} {name} {number}"):
                    self.same(function, pair, (number, number))
                    self.same(function, (number, number), pair)
                    self.same(function, [each[2] for each in pair], (number, number))
        for kind in KINDS:
            pair = columns(self.random, kind, 40)
            for function in [lambda _, one: ~one, lambda _, one: -one, lambda _, one: +one, lambda _, one: abs(one)]:
                self.same(function, pair)
                self.same(function, [each[2] for each in pair])

    def test_powers_of_floats_are_those_of_numpy_or_refused(self):
        for kind, exponent in itertools.product(["f4", "f8"], [-1, 0.5, 1, 2]):
            theirs, ours = columns(self.random, kind, 2_000)
            self.assertEqual(bits(theirs**exponent), bits(ours**exponent), (kind, exponent))
        values = own.array([1.5, 2.0])
        for function in [lambda: values**3, lambda: values**values, lambda: values[0] ** 2, lambda: 2.0**values]:
            with self.assertRaisesRegex(TypeError, "only array \\*\\* number with -1, 0.5, 1, 2 in a component"):
                function()

    def test_columns_are_read_only(self):
        column = own.frombuffer([100, 200], "u8")
        view = column[1:]
        changes = [lambda: operator.isub(column, 1), lambda: operator.iadd(view, 1), column.sort, lambda: view.fill(0)]
        for change in changes:
            with self.assertRaisesRegex(ValueError, r"read-only; use copy\(\)"):
                change()
        self.assertEqual((column - 1).tolist(), [99, 199])
        own_copy = column.copy()
        own_copy -= 1
        self.assertEqual([own_copy.tolist(), column.tolist()], [[99, 199], [100, 200]])

    def test_operators_in_place(self):
        names = "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift".split()

        def changed(function):
            def change(module, a, b):
                a = a.copy()
                view = a[1::2]
                self.assertIs(function(view, b), view)
                return a

            return change

        for one, other in itertools.product(KINDS, KINDS):
            first, second = columns(self.random, one, 40), columns(self.random, other, 20)
            for name in names:
                function = changed(getattr(operator, name))
                with self.subTest(f"{one} {name} {other}"):
                    self.same(function, first, second)
                    self.same(function, first, [each[3:4] for each in second])
                    self.same(function, first, [each[3] for each in second])
                    self.same(function, first, [each[:7] for each in second])
                    self.same(function, [each[:2] for each in first], second)
        for one, number in itertools.product(KINDS, [0, 1, 2, -2, 255, 2**40, 0.5, True]):
            for name in names:
                with self.subTest(f"{one} {name} {number}"):
                    self.same(changed(getattr(operator, name)), columns(self.random, one, 12), (number, number))

        def assigned(module, a, chosen):
            a, same = (a.copy(),) * 2
            a[chosen] += 1
            a[2:] += a[:-2]
            a *= 2
            return same

        for kind in KINDS:
            self.same(assigned, columns(self.random, kind, 12), columns(self.random, "?", 12))
        with self.assertRaises(TypeError):
            own.array([1]).__iadd__(1.5)
        with self.assertRaises(TypeError):
            operator.iadd(own.array([1]), "1")

    def test_reductions(self):
        for kind, count in itertools.product(KINDS, [0, 1, 5, 8, 13, 128, 300, 1000]):
            pair = columns(self.random, kind, count)
            for name in ["sum", "min", "max", "argmin", "argmax", "any", "all", "cumsum", "nonzero"]:
                if kind == "?" and name in ("min", "max"):
                    continue
                with self.subTest(f"{kind} {name} of {count}"):
                    if name == "nonzero":
                        self.same(lambda module, values: module.flatnonzero(values), pair)
                    else:
                        self.same(lambda _, values: getattr(values, name)(), pair)
            if count:
                self.same(lambda _, values: values.mean(), pair)
                self.same(lambda _, values: values.argsort(kind="stable"), pair)
                self.same(lambda module, values: module.unique(values), pair)
                self.same(lambda module, values: module.sort(values), pair)

    def test_functions(self):
        for one, other in itertools.product(KINDS, KINDS):
            first, second = columns(self.random, one, 20), columns(self.random, other, 20)
            mask = columns(self.random, "?", 20)
            with self.subTest(f"{one} {other}"):
                self.same(lambda module, a, b: module.minimum(a, b), first, second)
                self.same(lambda module, a, b: module.maximum(a, b), first, second)
                self.same(lambda module, a, b: module.concatenate([a, b[3:]]), first, second)
                self.same(lambda module, chosen, a, b: module.where(chosen, a, b), mask, first, second)
                self.same(lambda module, a, b: a.astype(b.dtype if module is np else b.kind) if one[0] != "f" else a, first, second)
                self.same(lambda module, a, b: module.isin(a, b), first, second)
        rows = self.random.integers(0, 6, 30)
        pair, weights = (rows, own.frombuffer(rows.tolist(), "i8")), columns(self.random, "f8", 30)
        self.same(lambda module, a: module.bincount(a, minlength=9), pair)
        self.same(lambda module, a, b: module.bincount(a, weights=b), pair, weights)
        self.same(lambda module, a: module.searchsorted(module.sort(a), [0, 3, 9], side="right"), pair)
        self.same(lambda module, a: module.clip(a, 1, 4), pair)
        for make in [lambda module: module.ones(4, dtype=bool), lambda module: module.zeros(3), lambda module: module.arange(2, 9, 3)]:
            self.same(make)
        for values in [[1, 2], [True, False], [1.5, 2], [], [True, 3]]:
            self.same(lambda module: module.array(values))

    def test_selections_and_views(self):
        for kind in KINDS:
            pair, mask = columns(self.random, kind, 12), columns(self.random, "?", 12)
            for select in [
                lambda _, a, m: a[m],
                lambda _, a, m: a[2:9:2][1:],
                lambda _, a, m: a[::-1],
                lambda _, a, m: a[[3, -1, 0]],
                lambda module, a, m: a[module.flatnonzero(m)[:2]],
                lambda _, a, m: a[-2],
                lambda _, a, m: a[99],
                lambda _, a, m: a[m[:3]],
            ]:
                self.same(select, pair, mask)

            def changed(module, a, m):
                a = a.copy()
                view = a[2:8]
                a[m] = 1
                view[0] = 0
                a[module.flatnonzero(m)] = a[m]
                a[[1, 2]] = [1, 0]
                return module.concatenate([a, view])

            self.same(changed, pair, mask)

    def test_elements(self):
        for kind in ["u4", "u8", "i8", "f8"]:
            theirs, ours = columns(self.random, kind, 5)
            for a, b in zip(theirs, ours):
                self.assertEqual((float(a), int(a), bool(a), hash(a) == hash(a.item())), (float(b), int(b), bool(b), hash(b) == hash(b.item())))
            if kind[0] != "f":
                self.assertEqual([10, 20, 30][own.array([2])[0]], 30)

    def test_what_is_not_determined_is_refused(self):
        with self.assertRaisesRegex(TypeError, 'needs kind="stable"'):
            own.array([1, 1]).argsort()
        with self.assertRaisesRegex(TypeError, "nested, must have one dimension"):
            own.array([[1]])
        with self.assertRaisesRegex(TypeError, "dtype: 'datetime64', must be one of"):
            own.array([1], dtype="datetime64")


class Latencies(unittest.TestCase):
    def test_numbers_of_arrays_give_the_latency_of_python_s(self):
        rows = [(1, 900, 0, 1), (4, 300, 0, 1), (1, 50, 1, 2), (4, 70, 1, 2)]
        profile = [
            SimpleNamespace(kind=0, variant=0, from_stage=begin, to_stage=end, exit=None if end == 1 else 0, batch=batch, latency=latency)
            for batch, latency, begin, end in rows
        ]
        catalog = component_native().Catalog(SimpleNamespace(profile=profile, workers=[SimpleNamespace(kind=0)]))
        for begin, end, exit, batch in [(0, 1, None, 3), (0, 2, 0, 2), (1, 2, 0, 3), (0, 2, 0, 5), (0, 0, 0, 1)]:
            expected = catalog.latency_us(0, 0, begin, end, exit, batch)
            for kind in ["u1", "u4", "u8", "i4", "i8"]:
                zero, begins, ends, batches = (own.array([number], kind)[0] for number in (0, begin, end, batch))
                exits = None if exit is None else own.array([exit], kind)[0]
                self.assertIs(type(made := catalog.latency_us(zero, zero, begins, ends, exits, batches)), type(expected))
                self.assertEqual(made, expected, (kind, begin, end, batch))
        self.assertEqual(catalog.latency_us(0, 0, 0, 1, None, 3), 500)
        with self.assertRaises(TypeError):
            catalog.latency_us(0, 0, 0, 1, None, 2.0)


if __name__ == "__main__":
    unittest.main()
