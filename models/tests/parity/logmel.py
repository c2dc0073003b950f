"""Reference for the log-mel features of models/src/logmel.rs, from NumPy alone.

    python3 -m venv /tmp/np && /tmp/np/bin/pip install numpy
    /tmp/np/bin/python models/tests/parity/logmel.py > models/src/features/logmel/reference.txt

Prints one value a line: the features [10, 40] of `clip()`, row by row. Computed in float64, with
NumPy's own FFT; the Rust test asks for agreement within 1e-4.
"""

import numpy as np

RATE, HOP, WINDOW, POINTS, BANDS = 16_000, 160, 400, 512, 40
LOW_HZ, HIGH_HZ, FLOOR, SPREAD = 60.0, 7_600.0, 1e-6, 2.5


def clip():
    """1,600 samples that both languages compute exactly."""
    i = np.arange(1600, dtype=np.int64)
    return (((i * 7919 + i * i * 31) % 2001 - 1000) / 2000).astype(np.float32)


def mel(hz):
    return 2595 * np.log10(1 + hz / 700)


def features(samples):
    left = (WINDOW - HOP) // 2
    count = -(-len(samples) // HOP)
    padded = np.concatenate([np.zeros(left), samples, np.zeros(WINDOW)])
    frames = np.stack([padded[t * HOP : t * HOP + WINDOW] for t in range(count)])
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    power = np.abs(np.fft.rfft(frames * hann, POINTS)) ** 2
    edges = np.linspace(mel(LOW_HZ), mel(HIGH_HZ), BANDS + 2)
    at = mel(np.arange(POINTS // 2 + 1) * RATE / POINTS)
    rising = (at - edges[:-2, None]) / (edges[1:-1, None] - edges[:-2, None])
    falling = (edges[2:, None] - at) / (edges[2:, None] - edges[1:-1, None])
    triangles = np.maximum(0, np.minimum(rising, falling))
    bands = np.log(power @ triangles.T + FLOOR)
    return (bands - bands.mean()) / SPREAD


for value in features(clip()).ravel():
    print(f"{value:.7f}")
