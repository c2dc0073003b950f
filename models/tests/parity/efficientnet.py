"""Reference outputs of EfficientNets in float64 NumPy: `python efficientnet.py > efficientnet.json`.

Channels first and with batch normalisation left unfolded, as PyTorch computes. Weights have timm's
names; torchvision's files get the same values under other names.
"""

import json
import math

import numpy as np

from common import fan_in_scale, tensor

# (expansion, kernel, stride, channels, blocks) of B0.
GROUPS = [
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1),
]
# Width, depth, lines and columns, and the term added to a variance.
CASES = {"b0": (1.0, 1.0, 64, 1e-5), "b2": (1.1, 1.2, 40, 1e-5)}
CLASSES = 10
IMAGES = 2


def channels(count, width):
    scaled = count * width
    rounded = max(8, int(scaled + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * scaled else rounded


def silu(x):
    return x / (1.0 + np.exp(-x))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def windows(x, kernel, stride):
    """[n, c, h, w] to [n, c, lines, columns, kernel, kernel]."""
    side = (kernel - 1) // 2
    padded = np.pad(x, ((0, 0), (0, 0), (side, side), (side, side)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    return views[:, :, ::stride, ::stride]


def conv(x, name, output, kernel=1, stride=1):
    fan_in = x.shape[1] * kernel * kernel
    weight = tensor(f"{name}.weight", (output, x.shape[1], kernel, kernel), fan_in_scale(fan_in))
    return np.einsum("nchwij,ocij->nohw", windows(x, kernel, stride), weight, optimize=True)


def depthwise(x, name, kernel, stride):
    weight = tensor(f"{name}.weight", (x.shape[1], 1, kernel, kernel), fan_in_scale(kernel * kernel))
    return np.einsum("nchwij,cij->nchw", windows(x, kernel, stride), weight[:, 0], optimize=True)


def norm(x, name, eps):
    part = lambda suffix, scale, offset: tensor(f"{name}.{suffix}", (x.shape[1],), scale, offset)[:, None, None]
    scaled = (x - part("running_mean", 0.125, 0.0)) / np.sqrt(part("running_var", 0.125, 0.25) + eps)
    return scaled * part("weight", 0.25, 1.0) + part("bias", 0.125, 0.0)


def excite(x, name, squeezed):
    def point(y, layer, output):
        at = f"{name}.{layer}"
        weight = tensor(f"{at}.weight", (output, y.shape[1], 1, 1), fan_in_scale(y.shape[1]))
        return y @ weight[:, :, 0, 0].T + tensor(f"{at}.bias", (output,), 0.125)

    y = silu(point(x.mean((2, 3)), "conv_reduce", squeezed))
    return x * sigmoid(point(y, "conv_expand", x.shape[1]))[:, :, None, None]


def block(x, at, expansion, kernel, stride, output, eps):
    inner, squeezed = x.shape[1] * expansion, x.shape[1] // 4
    if expansion == 1:
        y = silu(norm(depthwise(x, f"{at}.conv_dw", kernel, stride), f"{at}.bn1", eps))
        y = excite(y, f"{at}.se", squeezed)
        y = norm(conv(y, f"{at}.conv_pw", output), f"{at}.bn2", eps)
    else:
        y = silu(norm(conv(x, f"{at}.conv_pw", inner), f"{at}.bn1", eps))
        y = silu(norm(depthwise(y, f"{at}.conv_dw", kernel, stride), f"{at}.bn2", eps))
        y = excite(y, f"{at}.se", squeezed)
        y = norm(conv(y, f"{at}.conv_pwl", output), f"{at}.bn3", eps)
    return x + y if stride == 1 and x.shape[1] == output else y


def run(case):
    width, depth, size, eps = case
    x = tensor("input", (IMAGES, 3, size, size))
    x = silu(norm(conv(x, "conv_stem", channels(32, width), 3, 2), "bn1", eps))
    for group, (expansion, kernel, stride, output, blocks) in enumerate(GROUPS):
        for i in range(math.ceil(blocks * depth)):
            at, s = f"blocks.{group}.{i}", stride if i == 0 else 1
            x = block(x, at, expansion, kernel, s, channels(output, width), eps)
    x = silu(norm(conv(x, "conv_head", channels(1280, width)), "bn2", eps)).mean((2, 3))
    weight = tensor("classifier.weight", (CLASSES, x.shape[1]), 4.0 * fan_in_scale(x.shape[1]))
    return x @ weight.T + tensor("classifier.bias", (CLASSES,), 0.125)


if __name__ == "__main__":
    recorded = {
        name: [[round(float(v), 9) for v in row] for row in run(case)]
        for name, case in CASES.items()
    }
    print(json.dumps(recorded))
