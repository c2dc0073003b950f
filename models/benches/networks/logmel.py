"""Log-mel features of 16 kHz audio, as `features/logmel.rs` computes them.

The Fourier transform is a product with a table of cosines and one with a table of sines. A window is
symmetric about its middle, so its two halves are added and subtracted first, which halves the
products. In onnxruntime this is faster than a convolution with the whole table, and than the operator
STFT.
"""

import numpy

BANDS, HOP, WINDOW, POINTS = 40, 160, 400, 512
LEFT, HOPS, HALF = (WINDOW - HOP) // 2, -(-WINDOW // HOP), WINDOW // 2
RANGE_HZ, RATE_HZ = (60.0, 7600.0), 16000.0
FLOOR, SPREAD = 1e-6, 2.5


def mel(hz):
    return 2595 * numpy.log10(1 + hz / 700)


def triangles():
    """Heights of the bands, [bins, bands]."""
    low, high = map(mel, RANGE_HZ)
    edges = low + (high - low) * numpy.arange(BANDS + 2) / (BANDS + 1)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    at = mel(numpy.arange(POINTS // 2 + 1) * RATE_HZ / POINTS)[:, None]
    heights = numpy.minimum((at - left) / (centre - left), (right - at) / (right - centre))
    return numpy.maximum(heights, 0)


def windows(graph, samples, frames):
    """The input `x` [n, samples] to its windows [n, frames, 480]; only 400 values are used."""
    hops = frames + HOPS - 1
    pads = graph.integers(0, LEFT, 0, hops * HOP - LEFT - samples)
    x = graph.reshape(graph.node("Pad", ["x", pads]), -1, hops, HOP)
    parts = [graph.slice(x, 1, hop, hop + frames) for hop in range(HOPS)]
    return graph.node("Concat", parts, axis=2)


def logmel(graph, samples):
    """The input `x` [n, samples] to [n, frames, 40], and the number of frames."""
    frames, heights = -(-samples // HOP), triangles()
    x = windows(graph, samples, frames)
    # Bins outside of all bands are not computed.
    used = numpy.flatnonzero(heights.any(axis=1))
    turns = 2 * numpy.pi * numpy.outer(numpy.arange(HALF), used) / POINTS
    # Of Hann's window, from its middle on; the middle itself is added to itself.
    hann = 0.5 + 0.5 * numpy.cos(numpy.pi * numpy.arange(HALF) / HALF)
    hann[0] /= 2
    halves = [graph.slice(x, 2, HALF, WINDOW), graph.slice(x, 2, HALF, 0, -1)]
    squares = []
    for join, name, part in (("Add", "cosines", numpy.cos), ("Sub", "sines", numpy.sin)):
        table = graph.constant(name, hann[:, None] * part(turns))
        x = graph.node("MatMul", [graph.node(join, halves), table])
        squares.append(graph.node("Mul", [x, x]))
    powers = graph.node("Add", squares)
    x = graph.node("MatMul", [powers, graph.constant("heights", heights[used])])
    x = graph.node("Log", [graph.node("Add", [x, graph.constant("floor", FLOOR)])])
    x = graph.node("Sub", [x, graph.node("ReduceMean", [x], axes=[1, 2])])
    return graph.node("Mul", [x, graph.constant("spread", 1 / SPREAD)]), frames
