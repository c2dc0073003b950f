"""Reference logits of residual networks in float64 NumPy: `python resnet.py > resnet.json`.

Written from the papers and torchvision's tensor names: channels first, batch normalisation as it
stands, convolutions as sums over the window's positions.
"""

import json

import numpy as np

from common import fan_in_scale, tensor

EPSILON = 1e-5

# Blocks of each group, and the groups after which there is a head.
PUBLIC = {
    "resnet50": ([3, 4, 6, 3], [1, 2, 3, 4]),
    "resnet101": ([3, 4, 23, 3], [4]),
    "resnet152": ([3, 8, 36, 3], [4]),
}
OWN = {"resnet20": 3, "resnet32": 5, "resnet56": 9}
PUBLIC_SIZE, PUBLIC_CLASSES = 64, 10
OWN_SIZE, OWN_CLASSES = 32, 24
IMAGES = 2


def convolve(x, weight, stride=1):
    """PyTorch's conv2d with padding (kernel - 1) / 2; x is [n, in, h, w], weight [out, in, k, k]."""
    kernel = weight.shape[2]
    side = (kernel - 1) // 2
    x = np.pad(x, ((0, 0), (0, 0), (side, side), (side, side)))
    height = (x.shape[2] - kernel) // stride + 1
    width = (x.shape[3] - kernel) // stride + 1
    y = np.zeros((x.shape[0], weight.shape[0], height, width))
    for i in range(kernel):
        for j in range(kernel):
            tap = x[:, :, i : i + stride * height : stride, j : j + stride * width : stride]
            y += np.einsum("oc,nchw->nohw", weight[:, :, i, j], tap, optimize=True)
    return y


def max_pool(x):
    """3 x 3 with stride 2 and padding 1, which never wins."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    height, width = (x.shape[2] - 3) // 2 + 1, (x.shape[3] - 3) // 2 + 1
    taps = [
        x[:, :, i : i + 2 * height : 2, j : j + 2 * width : 2] for i in range(3) for j in range(3)
    ]
    return np.max(taps, axis=0)


def relu(x):
    return np.maximum(x, 0.0)


# === torchvision's naming ===


def normed(x, conv, norm, channels, kernel, stride=1):
    """A convolution without bias and its batch normalisation in inference."""
    inputs, outputs = channels
    scale = fan_in_scale(inputs * kernel * kernel)
    y = convolve(x, tensor(f"{conv}.weight", (outputs, inputs, kernel, kernel), scale), stride)
    shape = (outputs, 1, 1)
    mean = tensor(f"{norm}.running_mean", shape, 0.125)
    variance = tensor(f"{norm}.running_var", shape, 0.5, 1.0)
    gain = tensor(f"{norm}.weight", shape, 0.25, 1.0)
    return (y - mean) / np.sqrt(variance + EPSILON) * gain + tensor(f"{norm}.bias", shape, 0.125)


def dense(x, name, inputs, outputs):
    weight = tensor(f"{name}.weight", (outputs, inputs), fan_in_scale(inputs))
    return x @ weight.T + tensor(f"{name}.bias", (outputs,), 0.125)


def bottleneck(x, at, inputs, inner, stride):
    y = relu(normed(x, f"{at}.conv1", f"{at}.bn1", (inputs, inner), 1))
    y = relu(normed(y, f"{at}.conv2", f"{at}.bn2", (inner, inner), 3, stride))
    y = normed(y, f"{at}.conv3", f"{at}.bn3", (inner, inner * 4), 1)
    if stride != 1 or inputs != inner * 4:
        names = f"{at}.downsample.0", f"{at}.downsample.1"
        x = normed(x, *names, (inputs, inner * 4), 1, stride)
    return relu(x + y)


def public(blocks, exits):
    shape = (IMAGES, 3, PUBLIC_SIZE, PUBLIC_SIZE)
    x = tensor("input", shape)
    x = max_pool(relu(normed(x, "conv1", "bn1", (3, 64), 7, 2)))
    channels, logits = 64, []
    for group, count in enumerate(blocks, 1):
        inner = 32 * 2**group
        for block in range(count):
            stride = 2 if block == 0 and group > 1 else 1
            x = bottleneck(x, f"layer{group}.{block}", channels, inner, stride)
            channels = inner * 4
        if group in exits:
            name = "fc" if group == len(blocks) else f"exit{group}.fc"
            logits.append(dense(x.mean(axis=(2, 3)), name, channels, PUBLIC_CLASSES))
    return logits


# === Switchyard's naming: matrices [k * k * in + 1, out], the last row the bias ===


def biased(x, name, inputs, outputs, kernel, stride=1):
    rows = kernel * kernel * inputs
    matrix = tensor(f"{name}.weight", (rows + 1, outputs), fan_in_scale(rows))
    weight = matrix[:rows].reshape(kernel, kernel, inputs, outputs).transpose(3, 2, 0, 1)
    return convolve(x, weight, stride) + matrix[rows].reshape(outputs, 1, 1)


def own(blocks):
    x = tensor("input", (IMAGES, 3, OWN_SIZE, OWN_SIZE))
    x = relu(biased(x, "stem", 3, 16, 3))
    channels, logits = 16, []
    for group, width in enumerate((16, 32, 64), 1):
        for block in range(blocks):
            at = f"group{group}.block{block}"
            stride = 2 if block == 0 and group > 1 else 1
            y = relu(biased(x, f"{at}.conv1", channels, width, 3, stride))
            y = biased(y, f"{at}.conv2", width, width, 3)
            if stride != 1 or channels != width:
                x = biased(x, f"{at}.skip", channels, width, 1, stride)
            x = relu(x + y)
            channels = width
        pooled = x.mean(axis=(2, 3))
        weight = tensor(f"exit{group}.weight", (width, OWN_CLASSES), fan_in_scale(width))
        logits.append(pooled @ weight + tensor(f"exit{group}.bias", (OWN_CLASSES,), 0.125))
    return logits


if __name__ == "__main__":
    recorded = {name: public(*case) for name, case in PUBLIC.items()}
    recorded |= {name: own(blocks) for name, blocks in OWN.items()}
    numbers = {
        name: [[float(f"{value:.9g}") for value in exit.ravel()] for exit in exits]
        for name, exits in recorded.items()
    }
    print(json.dumps(numbers))
