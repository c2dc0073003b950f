"""Networks over one sequence: chains of 1-D convolutions and residual networks.

A sequence is an image of one line: onnxruntime has its fastest convolutions for images only.
"""


def conv1d(graph, x, name, inputs, length, kernel, stride):
    """A convolution of `ceil(length / stride)` windows, zeros outside, and its output's length."""
    # [offset, input channel | bias; output channel].
    rows = graph.weights[f"{name}.weight"]
    weight = rows[:-1].reshape(1, kernel, inputs, -1).transpose(3, 2, 0, 1)
    count, left = -(-length // stride), (kernel - stride) // 2
    right = max((count - 1) * stride + kernel - left - length, 0)
    x = graph.convolve(x, name, weight, rows[-1], strides=[1, stride], pads=[0, left, 0, right])
    return x, count


def chain(graph, x, prefix, inputs, length, layers):
    """Convolutions, each followed by a ReLU; then the mean over positions, [n, channels]."""
    for i, layer in enumerate(layers):
        name = f"{prefix}{i}"
        x, length = conv1d(graph, x, name, inputs, length, layer["kernel"], layer["stride"])
        x, inputs = graph.relu(x), layer["channels"]
    return graph.mean(x)


def cnn1d(graph, spec):
    samples = spec["samples"]
    x = graph.reshape("x", -1, 1, 1, samples)
    return graph.dense(chain(graph, x, "layer", 1, samples, spec["layers"]), "head"), [samples]


def resnet1d(graph, spec):
    samples, stem = spec["samples"], spec["stem"]
    x = graph.reshape("x", -1, 1, 1, samples)
    x, length = conv1d(graph, x, "stem", 1, samples, stem["kernel"], stem["stride"])
    x, channels = graph.relu(x), stem["channels"]
    for i, stage in enumerate(spec["stages"]):
        kernel, inner = stage["kernel"], stage["channels"]
        for j in range(stage["blocks"]):
            at, stride = f"stage{i}.block{j}", stage["stride"] if j == 0 else 1
            skip, first = x, -(-kernel // stride) * stride
            if stride != 1 or channels != inner:
                skip, _ = conv1d(graph, x, f"{at}.skip", channels, length, stride, stride)
            x, length = conv1d(graph, x, f"{at}.conv1", channels, length, first, stride)
            x, _ = conv1d(graph, graph.relu(x), f"{at}.conv2", inner, length, kernel, 1)
            x, channels = graph.relu(graph.node("Add", [skip, x])), inner
    return graph.dense(graph.mean(x), f"exit{len(spec['stages']) - 1}"), [samples]
