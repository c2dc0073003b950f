"""Weights as a function of tensor name and index, the same in common.rs."""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)


def values(name, count):
    """Numbers in [-1, 1) that f32 holds exactly: FNV-1a of the name, SplitMix64 over the index."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + GOLDEN * np.arange(1, count + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * MIX1
        z = (z ^ (z >> np.uint64(27))) * MIX2
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0


def tensor(name, shape, scale=1.0, offset=0.0):
    """`offset + scale * value`, row-major; exact in f32 where both are powers of two."""
    count = int(np.prod(shape))
    return (offset + scale * values(name, count)).reshape(shape)


def fan_in_scale(fan_in):
    """The power of two next below the deviation that keeps a layer's outputs as large as its inputs."""
    return 2.0 ** np.floor(np.log2(np.sqrt(3.0 / fan_in)))
