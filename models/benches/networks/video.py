"""X3D over a clip, and the same with an accelerometer.

Frames are images, and a convolution over time takes frames as lines. onnxruntime computes this faster
than one 3-D convolution per layer, and than sums of shifted frames.
"""

from .sequence import chain


def over_time(graph, x, name, frames, channels, side):
    """A depthwise convolution over three frames and a ReLU, [n * frames, channels, side, side]."""
    x = graph.reshape(x, -1, frames, channels, side * side)
    x = graph.node("Transpose", [x], perm=[0, 2, 1, 3])
    x = graph.relu(graph.depthwise(x, name, [3, 1], [1, 1]))
    x = graph.node("Transpose", [x], perm=[0, 2, 1, 3])
    return graph.reshape(x, -1, channels, side, side)


def stem(graph, x, spec, prefix):
    """`x` [n, frames, side, side] to images of the stem's channels, and the number of frames and side."""
    every, shrink = spec["every"], spec["shrink"]
    frames, side = spec["frames"] // every, spec["side"]
    if every > 1:
        x = graph.slice(x, 1, every - 1, spec["frames"], every)
    x = graph.reshape(x, -1, 1, side, side)
    if shrink > 1:
        square = [shrink] * 2
        x, side = graph.node("AveragePool", [x], kernel_shape=square, strides=square), side // shrink
    x, side = graph.conv(x, f"{prefix}stem", 1, 3, 2), -(-side // 2)
    return over_time(graph, x, f"{prefix}stem_time", frames, spec["stem"], side), frames, side


def trunk(graph, x, spec, prefix=""):
    """`x` [n, frames, side, side] to the features of a head [n, features].

    Also returns `order`, which moves the rows of a head's weights to the order of these features.
    """
    x, frames, side = stem(graph, x, spec, prefix)
    channels = spec["stem"]
    for i, stage in enumerate(spec["stages"]):
        inner, output = stage["inner"], stage["channels"]
        for j in range(stage["blocks"]):
            at, stride = f"{prefix}stage{i}.block{j}", stage["stride"] if j == 0 else 1
            skip = x
            if stride != 1 or channels != output:
                skip = graph.conv(x, f"{at}.skip", channels, 1, stride)
            x = graph.relu(graph.conv(x, f"{at}.widen", channels, 1, 1))
            x, side = graph.depthwise(x, f"{at}.space", [3, 3], [stride] * 2), -(-side // stride)
            x = over_time(graph, x, f"{at}.time", frames, inner, side)
            x = graph.conv(x, f"{at}.narrow", inner, 1, 1)
            x, channels = graph.relu(graph.node("Add", [skip, x])), output
    segments = spec["segments"]
    x = graph.node("ReduceMean", [x], axes=[3], keepdims=0)
    x = graph.reshape(x, -1, segments, frames // segments, channels * side)
    x = graph.node("Flatten", [graph.node("ReduceMean", [x], axes=[2], keepdims=0)])
    # Rows are ordered by (segment, line, channel), these features by (segment, channel, line).
    shape = segments, side, channels, -1
    return x, lambda rows: rows.reshape(shape).swapaxes(1, 2).reshape(rows.shape)


def samples(spec):
    return spec["frames"] * spec["side"] * spec["side"]


def clip(graph, x, spec):
    return graph.reshape(x, -1, spec["frames"], spec["side"], spec["side"])


def x3d(graph, spec):
    inner = spec["trunk"]
    x, order = trunk(graph, clip(graph, "x", inner), inner)
    return graph.dense(x, f"exit{len(spec['exits']) - 1}", order), [samples(inner)]


def with_magnitude(graph, x, length, axes):
    """[n, length * axes] to [n, axes + 1, length]: each moment's axes, then their magnitude."""
    x = graph.reshape(x, -1, length, axes)
    x = graph.node("Concat", [x, graph.node("ReduceL2", [x], axes=[2])], axis=2)
    return graph.node("Transpose", [x], perm=[0, 2, 1])


def fusion(graph, spec):
    sensor, inner = spec["sensor"], spec["trunk"]
    length, axes = sensor["length"], sensor["axes"]
    felt = length * axes
    width = felt + samples(inner)
    x = with_magnitude(graph, graph.slice("x", 1, 0, felt), length, axes)
    x = graph.reshape(x, -1, axes + 1, 1, length)
    felt_features = chain(graph, x, "sensor.layer", axes + 1, length, sensor["layers"])
    x = clip(graph, graph.slice("x", 1, felt, width), inner)
    seen_features, order = trunk(graph, x, inner, "trunk.")
    channels = sensor["layers"][-1]["channels"]
    both = graph.node("Concat", [felt_features, seen_features], axis=1)

    def order_seen(rows):
        rows = rows.copy()
        rows[channels:] = order(rows[channels:])
        return rows

    return graph.dense(both, "head", order_seen), [width]
