"""MiniRocket: two dilated convolutions per dilation, and the share of moments above each bias.

The kernels that extend beyond the window's ends make one convolution of a dilation, the others the
second one.
"""

import itertools

import numpy
from onnx import TensorProto

from .video import with_magnitude

REACH = 9
KERNELS = list(itertools.combinations(range(REACH), 3))
DILATIONS_MAX = 32


def dilations(length, features):
    """Steps and features per kernel, as in `minirocket/convolutions.rs`."""
    count = min(features, DILATIONS_MAX)
    top = numpy.log2((length - 1) / (REACH - 1))
    steps = [int(2 ** (top * i / max(count - 1, 1))) for i in range(count)]
    found = [[step, steps.count(step) * features // count] for step in dict.fromkeys(steps)]
    for i in range(features - sum(features for _, features in found)):
        found[i % len(found)][1] += 1
    return found


def taps():
    """Weights of the kernels, [kernel, 1, 9]."""
    weights = numpy.full((len(KERNELS), 1, REACH), -1.0)
    for row, kernel in zip(weights[:, 0], KERNELS):
        row[list(kernel)] = 2
    return weights


def shares(graph, x, name, weight, biases, step, padded):
    """The share of moments above each bias, [n, kernels * features]."""
    kernels, features = biases.shape
    side = step * (REACH // 2) if padded else 0
    names = [graph.constant(f"{name}.w", weight)]
    x = graph.node("Conv", [x, *names], kernel_shape=[REACH], dilations=[step], pads=[side] * 2)
    if features > 1:
        x = graph.node("Unsqueeze", [x, graph.integers(2)])
        biases = biases[:, :, None]
    above = graph.node("Greater", [x, graph.constant(f"{name}.biases", biases)])
    above = graph.node("Cast", [above], to=TensorProto.FLOAT)
    return graph.node("Flatten", [graph.node("ReduceMean", [above], axes=[-1], keepdims=0)])


def minirocket(graph, spec):
    length, axes, kernels = spec["length"], spec["axes"], len(KERNELS)
    x = with_magnitude(graph, "x", length, axes)
    gains = graph.weights["channels"].reshape(-1, kernels, axes + 1, 1)
    found, order, before = [], [], 0
    for i, (step, features) in enumerate(dilations(length, spec["features_per_kernel"])):
        weight = gains[i] * taps()
        at = before + numpy.arange(kernels * features).reshape(kernels, features)
        before += kernels * features
        for first in range(2):
            half = at[first::2]
            biases = graph.weights["biases"][half]
            name, padded = f"dilation{i}.{first}", first == i % 2
            found.append(shares(graph, x, name, weight[first::2], biases, step, padded))
            order.append(half.flatten())
    x = graph.node("Concat", found, axis=1)
    # Means and scales of the features are part of the head's weights.
    weight = graph.weights["scales"][:, None] * graph.weights["head.weight"]
    bias = graph.weights["head.bias"] - graph.weights["means"] @ weight
    head = [graph.constant("head.w", weight[numpy.concatenate(order)]), graph.constant("head.b", bias)]
    return graph.node("Gemm", [x, *head]), [length * axes]
