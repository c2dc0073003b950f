"""Adds an exported model in an empty folder, serves it, and compares it with onnxruntime.

`python check.py FOLDER SWITCHYARD` prints one line of JSON: the seconds from `switchyard add` to the
first answer over HTTP, the engine, the largest difference, and for 1 and 8 rows on 1 and 2 threads the
median latencies, taken in turns. The server's latency is `compute_us` of its answers: the engine without
HTTP. A model that takes no batch of 8 has the latencies of one row only.
"""

import http.client
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

APP = "model"

# Longest wait for the first answer.
PATIENCE_S = 300

# Time for measuring the latencies of a cell, and fewest rounds.
MEASURED_S = 5
ROUNDS = 3

ROWS = (1, 8)
THREADS = (1, 2)

# Longest wait for a batch, in microseconds: the deadline of an added app is 1 s.
TIMEOUT_US = 60_000_000

DATATYPES = {"float32": "FP32", "float64": "FP64", "int64": "INT64", "int32": "INT32", "bool": "BOOL"}


def request(inputs):
    """Header and body of a request: numbers as blobs, texts as JSON."""
    listed, blobs = [], b""
    for name, value in inputs.items():
        entry = {"name": name, "shape": list(value.shape)}
        if value.dtype.kind == "U":
            listed.append(entry | {"datatype": "BYTES", "data": value.reshape(-1).tolist()})
            continue
        blob = np.ascontiguousarray(value).tobytes()
        blobs += blob
        entry |= {"datatype": DATATYPES[str(value.dtype)], "parameters": {"binary_data_size": len(blob)}}
        listed.append(entry)
    text = json.dumps({"parameters": {"timeout": TIMEOUT_US}, "inputs": listed}).encode()
    return {"Inference-Header-Content-Length": str(len(text))}, text + blobs


def batch(inputs, rows):
    """The same row again and again; real numbers get smaller, so that a batch that mixes its rows differs."""
    def row(value, at):
        return value * value.dtype.type(1 - at / 16) if value.dtype.kind == "f" else value

    return {name: np.concatenate([row(value, at) for at in range(rows)]) for name, value in inputs.items()}


class Server:
    """`switchyard serve` in a folder, with the configuration `text`."""

    def __init__(self, program, folder, text, threads):
        with socket.socket() as first, socket.socket() as second:
            for free in (first, second):
                free.bind(("127.0.0.1", 0))
            self.port, admin = (free.getsockname()[1] for free in (first, second))
        config = folder / "switchyard.toml"
        text = text.replace('name = "cpu"\n', f'name = "cpu"\nthreads = {threads}\n', 1)
        config.write_text(f'[server]\nhttp = "127.0.0.1:{self.port}"\nadmin = "127.0.0.1:{admin}"\n\n{text}')
        self.log = (folder / "serve.log").open("w")
        self.process = subprocess.Popen([program, "serve", "--config", str(config)], cwd=folder, stdout=self.log, stderr=self.log)
        self.connection = None

    def answer(self, headers, body):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        self.connection.request("POST", f"/v2/models/{APP}/infer", body, headers)
        response = self.connection.getresponse()
        return response.status, response.read()

    def first(self, headers, body):
        until, last = time.monotonic() + PATIENCE_S, "no answer"
        while time.monotonic() < until and self.process.poll() is None:
            try:
                status, text = self.answer(headers, body)
                if status == 200:
                    return json.loads(text)
                last = text.decode(errors="replace")
            except OSError as error:
                self.connection = None
                last = str(error)
            time.sleep(0.02)
        raise RuntimeError(f"the server did not answer: {last}")

    def served(self, headers, body):
        status, text = self.answer(headers, body)
        if status != 200:
            raise RuntimeError(text.decode(errors="replace"))
        return json.loads(text)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def difference(found, wanted):
    """The largest difference, relative where the largest value of the output is above 1."""
    if wanted.dtype.kind in "USO":
        return 0.0 if [str(v) for v in found.reshape(-1)] == [str(v) for v in wanted.reshape(-1)] else float("inf")
    if found.shape != wanted.shape:
        return float("inf")
    largest = max(1.0, float(np.abs(wanted).max()))
    return float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()) / largest


class Reference:
    """onnxruntime on a number of threads, which sleep between two operations as the server's do."""

    def __init__(self, file, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.names = [port.name for port in self.session.get_outputs()]

    def takes_batches(self):
        return not any(isinstance(port.shape[0], int) for port in self.session.get_inputs())

    def feed(self, stored):
        values = {port.name: stored[port.name] for port in self.session.get_inputs()}
        return {name: value.astype(object) if value.dtype.kind == "U" else value for name, value in values.items()}

    def outputs(self, feed):
        return dict(zip(self.names, self.session.run(self.names, feed)))


def compared(answer, wanted):
    """The largest difference of the server's answer from onnxruntime's outputs."""
    outputs = {}
    for output in answer["outputs"]:
        kind = {"FP32": np.float32, "FP64": np.float64, "INT64": np.int64, "BOOL": bool}
        data = np.array(output["data"], dtype=kind.get(output["datatype"], object))
        outputs[output["name"]] = data.reshape(output["shape"])
    # An only output may have another name.
    only = next(iter(outputs.values())) if len(outputs) == len(wanted) == 1 else None
    return max(difference(outputs.get(name, only), value) for name, value in wanted.items())


def measured(server, message, reference, feed):
    """Median latencies of the server and of onnxruntime in milliseconds, and the rounds."""
    ours, theirs, until = [], [], time.monotonic() + MEASURED_S
    while len(ours) < ROUNDS or time.monotonic() < until:
        start = time.perf_counter()
        reference.outputs(feed)
        theirs.append(time.perf_counter() - start)
        ours.append(server.served(*message)["parameters"]["compute_us"] / 1e6)
    return {
        "served_ms": statistics.median(ours) * 1e3,
        "onnxruntime_ms": statistics.median(theirs) * 1e3,
        "rounds": len(ours),
    }


def main():
    folder, program = Path(sys.argv[1]).resolve(), str(Path(sys.argv[2]).resolve())
    # The engines inside the program, not the machine's library.
    os.environ.pop("ORT_DYLIB_PATH", None)
    case = json.loads((folder / "case.json").read_text())
    stored = np.load(folder / "inputs.npz")
    inputs = {name: stored[name] for name in case["inputs"]}
    stored = np.load(case["reference_inputs"])

    served = folder / "served"
    shutil.rmtree(served, ignore_errors=True)
    served.mkdir()
    first = request(inputs)
    began = time.monotonic()
    added = subprocess.run(
        [program, "add", case["source"], "--as", APP], cwd=served, capture_output=True, text=True
    )
    if added.returncode != 0:
        raise RuntimeError(added.stderr.strip().splitlines()[-1])
    engine, largest = re.search(
        r"parameters on (.*?)(?: in [0-9.]+ MiB)?, batches of 1 to ([0-9]+)", added.stdout
    ).groups()
    config = (served / "switchyard.toml").read_text()
    seconds, worst, cells = None, 0.0, []
    for threads in THREADS:
        server = Server(program, served, config, threads)
        try:
            server.first(*first)
            # Of the first server only.
            seconds = seconds or time.monotonic() - began
            reference = Reference(case["reference"], threads)
            for rows in ROWS:
                if rows > 1 and (int(largest) < rows or not reference.takes_batches()):
                    continue
                message, feed = request(batch(inputs, rows)), reference.feed(batch(stored, rows))
                answer = server.served(*message)
                if answer["parameters"]["batch_size"] != rows:
                    raise RuntimeError(f"{rows} rows did not run as one batch: {answer['parameters']}")
                worst = max(worst, compared(answer, reference.outputs(feed)))
                cells.append({"rows": rows, "threads": threads} | measured(server, message, reference, feed))
        finally:
            server.stop()
    # JSON has no infinity and no NaN.
    worst = worst if worst < 1e300 else 1e300
    print(json.dumps({"seconds": seconds, "engine": engine, "difference": worst, "cells": cells}))


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        print(json.dumps({"refused": str(error)}))
