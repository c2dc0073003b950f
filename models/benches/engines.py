"""The networks of engines.rs in onnxruntime, timed on request.

    engines.py FOLDER

FOLDER holds, for each network, NAME.json (its architecture, as in model.toml), NAME.safetensors
and NAME.input (f32, channels first). Reads requests from standard input, one a line, answers each
with one line of JSON:

    versions
    save NAME FILE                writes the network as an ONNX file
    logits NAME BATCH             the answers to the first BATCH inputs
    time NAME BATCH THREADS RUNS  milliseconds of each run: by the clock, and of CPU
"""

import json
import pathlib
import sys

import numpy
from graphs import Graph, serve, session, tensors, times, versions


def network(spec, weights):
    """A residual network as an ONNX model; only its last exit."""
    graph = Graph(weights)
    stem = spec["stem"]
    x = graph.relu(graph.conv("x", "stem", 3, stem["kernel"], stem["stride"]))
    if stem["pool"]:
        x = graph.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = stem["channels"]
    for i, group in enumerate(spec["groups"]):
        inner = group["channels"]
        for j in range(group["blocks"]):
            at, stride = f"group{i + 1}.block{j}", group["stride"] if j == 0 else 1
            if spec["block"] == "basic":
                output = inner
                convs = [(channels, 3, stride), (inner, 3, 1)]
            else:
                output = 4 * inner
                convs = [(channels, 1, 1), (inner, 3, stride), (inner, 1, 1)]
            skip = x
            if stride != 1 or channels != output:
                skip = graph.conv(x, f"{at}.skip", channels, 1, stride)
            for n, (inputs, kernel, stride) in enumerate(convs, 1):
                x = graph.conv(x, f"{at}.conv{n}", inputs, kernel, stride)
                if n < len(convs):
                    x = graph.relu(x)
            x = graph.relu(graph.node("Add", [skip, x]))
            channels = output
    side = spec["size"]
    logits = graph.dense(graph.mean(x), f"exit{len(spec['groups'])}")
    return graph.model(logits, [3, side, side], spec["classes"])


class Engines:
    def __init__(self, folder):
        self.folder = folder
        self.sessions = {}

    def session(self, name, threads):
        if (name, threads) not in self.sessions:
            spec = json.loads((self.folder / f"{name}.json").read_text())
            weights = tensors(self.folder / f"{name}.safetensors")
            self.sessions[name, threads] = session(network(spec, weights), threads)
        return self.sessions[name, threads]

    def input(self, name, batch):
        spec = json.loads((self.folder / f"{name}.json").read_text())
        numbers = numpy.fromfile(self.folder / f"{name}.input", dtype="<f4")
        images = numbers.reshape(-1, 3, spec["size"], spec["size"])
        return numpy.ascontiguousarray(images[:batch])

    def answer(self, request, *rest):
        if request == "versions":
            return versions()
        if request == "save":
            name, file = rest
            spec = json.loads((self.folder / f"{name}.json").read_text())
            weights = tensors(self.folder / f"{name}.safetensors")
            return pathlib.Path(file).write_bytes(network(spec, weights))
        if request == "logits":
            name, batch = rest
            logits = self.session(name, 1).run(None, {"x": self.input(name, int(batch))})[0]
            return logits.flatten().tolist()
        name, batch, threads, runs = rest
        return times(self.session(name, int(threads)), self.input(name, int(batch)), int(runs))


if __name__ == "__main__":
    serve(Engines(pathlib.Path(sys.argv[1])).answer)
