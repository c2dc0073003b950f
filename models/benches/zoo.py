"""The networks of the zoo in onnxruntime, timed on request.

    zoo.py FOLDER

FOLDER holds the inputs of each variant, APP-VARIANT.input (f32). Weights and architectures come from
`models/zoo`. Reads requests from standard input, one a line, answers each with one line of JSON:

    versions
    logits APP/VARIANT BATCH             the answers to the first BATCH inputs
    time APP/VARIANT BATCH THREADS RUNS  milliseconds of each run: by the clock, and of CPU
"""

import functools
import pathlib
import sys

import numpy
from graphs import serve, session, times, versions
from networks import network

ZOO = pathlib.Path(__file__).parents[1] / "zoo"
FOLDER = pathlib.Path(sys.argv[1])


@functools.cache
def model(name, threads):
    return session(network(ZOO / name), threads)


@functools.cache
def rows(name, batch, shape):
    """The first inputs of a network, in the shape of one."""
    numbers = numpy.fromfile(FOLDER / f"{name.replace('/', '-')}.input", dtype="<f4")
    return numpy.ascontiguousarray(numbers.reshape(-1, *shape)[:batch])


def answer(request, *rest):
    if request == "versions":
        return versions()
    name, batch, *sizes = rest
    threads, runs = map(int, sizes or (1, 1))
    built = model(name, threads)
    x = rows(name, int(batch), tuple(built.get_inputs()[0].shape[1:]))
    if request == "logits":
        return built.run(None, {"x": x})[0].flatten().tolist()
    return times(built, x, runs)


if __name__ == "__main__":
    serve(answer)
