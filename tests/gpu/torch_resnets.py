#!/usr/bin/env python3
"""The same ResNets in PyTorch, eager and compiled, in f32 and in half precision: times to compare with.

Weights are those of zoo.py, loaded into torchvision's networks, so that the answers of both can be
compared too. Times are of the network alone, on inputs in GPU memory, by CUDA events:
medians in microseconds. Convolutions may use TF32, as PyTorch's default has it; `tf32` says so.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

BATCHES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 32]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--zoo", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=0.4, help="for each cell")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for everything")
    args = parser.parse_args()
    try:
        import torch
        import torchvision
        from safetensors.torch import load_file
    except ImportError as missing:
        print(f"not compared: {missing}")
        return 0
    if not torch.cuda.is_available():
        print("PyTorch finds no GPU")
        return 1
    begin = time.monotonic()
    device = torch.device("cuda:0")
    result = {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(0),
        "tf32": {
            "convolutions": torch.backends.cudnn.allow_tf32,
            "products": torch.backends.cuda.matmul.allow_tf32,
        },
        "cells": [],
    }

    def measured(run, x):
        with torch.inference_mode():
            for _ in range(5):
                run(x)
            torch.cuda.synchronize()
            times, until = [], time.monotonic() + args.seconds
            while time.monotonic() < until or len(times) < 10:
                first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                first.record()
                run(x)
                last.record()
                last.synchronize()
                times.append(first.elapsed_time(last) * 1000.0)
        return statistics.median(times), len(times)

    for name in ("resnet50", "resnet101", "resnet152"):
        file = args.zoo / name / "base" / "model.safetensors"
        if not file.exists():
            continue
        weights = {k: v for k, v in load_file(file).items() if not k.startswith("exit")}
        network = getattr(torchvision.models, name)(weights=None)
        network.load_state_dict(weights, strict=False)
        network = network.eval().to(device)
        for precision, dtype in (("f32", torch.float32), ("f16", torch.float16)):
            typed = network.to(dtype)
            ways = [("eager", typed)]
            # Compiling takes long: of the others, eager says enough.
            if name == "resnet50":
                ways.append(("compiled", torch.compile(typed, dynamic=False)))
            for way, run in ways:
                batches = BATCHES if way == "eager" else [1, 8, 32]
                for batch in batches:
                    if time.monotonic() - begin > args.limit:
                        result["cut"] = True
                        break
                    x = torch.randn(batch, 3, 224, 224, device=device, dtype=dtype)
                    median, samples = measured(run, x)
                    cell = dict(
                        network=name,
                        precision=precision,
                        way=way,
                        batch=batch,
                        median_us=round(median, 1),
                        samples=samples,
                    )
                    result["cells"].append(cell)
                    print(cell, flush=True)
                    args.out.write_text(json.dumps(result, indent=1))
            network = network.float()
    args.out.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
