#!/usr/bin/env python3
"""Writes ResNet-50, 101 and 152 with three early exits as three apps, and configurations for a GPU.

The weights are random, so that nothing has to be fetched: time does not depend on them. They have
torchvision's names and shapes, with `exit1.fc` to `exit3.fc` in addition to `fc`. Needs numpy.
"""
import argparse
import json
import pathlib
import struct

import numpy as np

DEPTHS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}
CLASSES = 1000
SLO_MS = 50.0


def tensors(blocks, rng):
    """Names and arrays of one network, He-scaled so that activations stay finite in f16."""
    out = {}

    def normed(conv, norm, shape, gain=1.0):
        fan_in = shape[1] * shape[2] * shape[3]
        scale = gain * np.sqrt(2.0 / fan_in)
        out[conv + ".weight"] = rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)
        width = shape[0]
        out[norm + ".weight"] = np.ones(width, np.float32)
        out[norm + ".bias"] = np.zeros(width, np.float32)
        out[norm + ".running_mean"] = np.zeros(width, np.float32)
        out[norm + ".running_var"] = np.ones(width, np.float32)

    def linear(name, inputs):
        scale = np.float32(1.0 / np.sqrt(inputs))
        out[name + ".weight"] = rng.standard_normal((CLASSES, inputs), dtype=np.float32) * scale
        out[name + ".bias"] = np.zeros(CLASSES, np.float32)

    normed("conv1", "bn1", (64, 3, 7, 7))
    channels = 64
    for group, count in enumerate(blocks, start=1):
        inner = 32 << group
        for block in range(count):
            at = f"layer{group}.{block}"
            normed(f"{at}.conv1", f"{at}.bn1", (inner, channels, 1, 1))
            normed(f"{at}.conv2", f"{at}.bn2", (inner, inner, 3, 3))
            # A sum of many blocks stays small when each adds little.
            normed(f"{at}.conv3", f"{at}.bn3", (inner * 4, inner, 1, 1), gain=0.2)
            if block == 0:
                shape = (inner * 4, channels, 1, 1)
                normed(f"{at}.downsample.0", f"{at}.downsample.1", shape)
            channels = inner * 4
        linear("fc" if group == len(blocks) else f"exit{group}.fc", channels)
    return out


def save(path, arrays):
    """A safetensors file."""
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).tobytes())


def parameters(arrays):
    """Number of trained parameters, without the statistics of the data."""
    return sum(a.size for name, a in arrays.items() if "running_" not in name)


def card(name, blocks, count, size):
    groups = "\n".join(
        f"[[architecture.groups]]\nchannels = {32 << g}\nblocks = {n}\nstride = {1 if g == 1 else 2}\n"
        for g, n in enumerate(blocks, start=1)
    )
    # The least number of slices: one stage a group, and an exit after each.
    exits = "\n".join(
        f'[[exits]]\nname = "exit{g}"\nafter_stage = {g}\naccuracy = {0.4 + 0.1 * g:.1f}\n'
        for g in (1, 2, 3, 4)
    )
    return f"""name = "{name}"
summary = "Bottleneck residual network of random weights, to be timed"
weights = "model.safetensors"
parameters = {count}
max_batch = 32
stages = 4

[architecture]
kind = "resnet2d"
size = {size}
classes = {CLASSES}
layout = "torchvision"
block = "bottleneck"
exits = [1, 2, 3, 4]
slices = 1

[architecture.stem]
channels = 64
kernel = 7
stride = 2
pool = true

{groups}
{exits}
[provenance]
command = "tests/gpu/zoo.py"
data = "none"
"""


def app(name, size):
    classes = ", ".join(f'"c{i}"' for i in range(CLASSES))
    share = ", ".join([f"{1 / CLASSES}"] * CLASSES)
    return f"""name = "{name}"
summary = "A picture of {size} by {size}"
classes = [{classes}]
slo_ms = {SLO_MS}
penalty = "step"
workload_mix = [{share}]

[[inputs]]
name = "image"
datatype = "FP32"
shape = [3, {size}, {size}]

[[outputs]]
name = "probabilities"
datatype = "FP32"
shape = [{CLASSES}]

[[outputs]]
name = "label"
datatype = "INT64"
shape = [1]

[validation]
samples = 1000
frequencies = [{share}]
seed = 1
"""


def configuration(names, device, variants):
    apps = "\n".join(
        f'[[app]]\nname = "{name}"\nzoo = "."\nvariants = [{variants}]\n' for name in names
    )
    listed = ", ".join(f'"{name}"' for name in names)
    return f"""{apps}
[[worker]]
name = "gpu"
device = "{device}"
memory_mb = 8192

[[pool]]
name = "main"
apps = [{listed}]
workers = ["gpu"]
policy = "stability"
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--size", type=int, default=224, help="lines and columns of a picture")
    parser.add_argument("--only", nargs="*", default=list(DEPTHS), choices=list(DEPTHS))
    args = parser.parse_args()
    for seed, name in enumerate(args.only):
        folder = args.out / name / "base"
        folder.mkdir(parents=True, exist_ok=True)
        arrays = tensors(DEPTHS[name], np.random.default_rng(seed))
        save(folder / "model.safetensors", arrays)
        text = card("base", DEPTHS[name], parameters(arrays), args.size)
        (folder / "model.toml").write_text(text)
        (args.out / name / "app.toml").write_text(app(name, args.size))
    both = configuration(args.only, args.device, '"base", "base@f16"')
    (args.out / "profile.toml").write_text(both)
    print(f"{len(args.only)} networks in {args.out}")


if __name__ == "__main__":
    main()
