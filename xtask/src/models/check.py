"""Adds an exported model in an empty folder, serves it, and compares it with onnxruntime.

`python check.py FOLDER SWITCHYARD` prints one line of JSON: the seconds from `switchyard add` to the
first answer over HTTP, the engine, the largest difference, and median latencies of one row on one
thread, taken in turns. The server's latency is `compute_us` of its answers: the engine without HTTP.
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

# Time for measuring latencies, and fewest rounds.
MEASURED_S = 6
ROUNDS = 10

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
    text = json.dumps({"inputs": listed}).encode()
    return {"Inference-Header-Content-Length": str(len(text))}, text + blobs


class Server:
    """`switchyard serve` in a folder."""

    def __init__(self, program, folder):
        with socket.socket() as first, socket.socket() as second:
            for free in (first, second):
                free.bind(("127.0.0.1", 0))
            self.port, admin = (free.getsockname()[1] for free in (first, second))
        config = folder / "switchyard.toml"
        text = config.read_text().replace('name = "cpu"\n', 'name = "cpu"\nthreads = 1\n', 1)
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


def main():
    folder, program = Path(sys.argv[1]).resolve(), str(Path(sys.argv[2]).resolve())
    # The engines inside the program, not the machine's library.
    os.environ.pop("ORT_DYLIB_PATH", None)
    case = json.loads((folder / "case.json").read_text())
    stored = np.load(folder / "inputs.npz")
    inputs = {name: stored[name] for name in case["inputs"]}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(case["reference"], options, providers=["CPUExecutionProvider"])
    reference = np.load(case["reference_inputs"])
    reference = {port.name: reference[port.name] for port in session.get_inputs()}
    reference = {name: value.astype(object) if value.dtype.kind == "U" else value for name, value in reference.items()}
    names = [port.name for port in session.get_outputs()]
    wanted = dict(zip(names, session.run(names, reference)))

    served = folder / "served"
    shutil.rmtree(served, ignore_errors=True)
    served.mkdir()
    headers, body = request(inputs)
    began = time.monotonic()
    added = subprocess.run(
        [program, "add", case["source"], "--as", APP], cwd=served, capture_output=True, text=True
    )
    if added.returncode != 0:
        raise RuntimeError(added.stderr.strip().splitlines()[-1])
    server = Server(program, served)
    try:
        answer = server.first(headers, body)
        seconds = time.monotonic() - began
        outputs = {}
        for output in answer["outputs"]:
            kind = {"FP32": np.float32, "FP64": np.float64, "INT64": np.int64, "BOOL": bool}
            data = np.array(output["data"], dtype=kind.get(output["datatype"], object))
            outputs[output["name"]] = data.reshape(output["shape"])
        # An only output may have another name.
        only = next(iter(outputs.values())) if len(outputs) == len(wanted) == 1 else None
        found = {name: outputs.get(name, only) for name in wanted}
        worst = max(difference(found[name], value) for name, value in wanted.items())
        ours, theirs, until = [], [], time.monotonic() + MEASURED_S
        while len(ours) < ROUNDS or time.monotonic() < until:
            start = time.perf_counter()
            session.run(names, reference)
            theirs.append(time.perf_counter() - start)
            status, text = server.answer(headers, body)
            if status != 200:
                raise RuntimeError(text.decode(errors="replace"))
            ours.append(json.loads(text)["parameters"]["compute_us"] / 1e6)
    finally:
        server.stop()
    engine = re.search(r"parameters on (.*?)(?: in [0-9.]+ MiB)?, batches of", added.stdout).group(1)
    result = {
        "seconds": seconds,
        "engine": engine,
        # JSON has no infinity and no NaN.
        "difference": worst if worst < 1e300 else 1e300,
        "served_ms": statistics.median(ours) * 1e3,
        "onnxruntime_ms": statistics.median(theirs) * 1e3,
        "rounds": len(ours),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        print(json.dumps({"refused": str(error)}))
