"""Networks over log-mel features: MobileNet and LSTM."""

import numpy

from .logmel import BANDS, logmel

# Added to the forget gate, as in `lstm/recurrence.rs`.
FORGET_BIAS = 1.0


def mobilenet(graph, spec):
    samples = spec["samples"]
    x, frames = logmel(graph, samples)
    x = graph.reshape(x, -1, 1, frames, BANDS)
    x, channels = graph.relu(graph.conv(x, "stem", 1, 3, 2)), spec["stem"]
    for i, group in enumerate(spec["groups"]):
        at, output = f"group{i}.separable", group["channels"]
        x = graph.relu(graph.depthwise(x, f"{at}.depthwise", [3, 3], [group["stride"]] * 2))
        x, channels = graph.relu(graph.conv(x, f"{at}.pointwise", channels, 1, 1)), output
        for j in range(group["blocks"]):
            at = f"group{i}.block{j}"
            inner = graph.relu(graph.conv(x, f"{at}.expand", channels, 1, 1))
            inner = graph.relu(graph.depthwise(inner, f"{at}.depthwise", [3, 3], [1, 1]))
            inner = graph.conv(inner, f"{at}.project", channels * spec["expansion"], 1, 1)
            x = graph.node("Add", [x, inner])
    x = graph.mean(graph.relu(x))
    return graph.dense(x, f"exit{len(spec['exits']) - 1}"), [samples]


def gates(columns):
    """Columns of gates in Switchyard's order (input, forget, candidate, output) to rows in ONNX's."""
    parts = numpy.split(columns, 4, axis=-1)
    return numpy.concatenate([parts[i] for i in (0, 3, 1, 2)], axis=-1).T[None]


def lstm(graph, spec):
    samples, stack = spec["samples"], spec["stack"]
    x, frames = logmel(graph, samples)
    steps = frames // stack
    if frames % stack:
        x = graph.slice(x, 1, 0, steps * stack)
    x = graph.reshape(x, -1, steps, stack * BANDS)
    x = graph.node("Transpose", [x], perm=[1, 0, 2])
    for i, width in enumerate(spec["layers"]):
        at = f"layer{i}"
        bias = graph.weights[f"{at}.input.bias"] + numpy.repeat([0, FORGET_BIAS, 0, 0], width)
        both = numpy.concatenate([gates(bias), numpy.zeros((1, 4 * width))], axis=1)
        names = [
            graph.constant(f"{at}.w", gates(graph.weights[f"{at}.input.weight"])),
            graph.constant(f"{at}.r", gates(graph.weights[f"{at}.recurrent"])),
            graph.constant(f"{at}.b", both),
        ]
        # [steps, directions, n, width].
        x = graph.node("Squeeze", [graph.node("LSTM", [x, *names], hidden_size=width), graph.integers(1)])
    mean = graph.node("ReduceMean", [x], axes=[0], keepdims=0)
    return graph.dense(mean, "head"), [samples]
