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
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def tensors(file):
    """A safetensors file: an 8-byte length, JSON, numbers."""
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", name
        start, end = entry["data_offsets"]
        numbers = numpy.frombuffer(data[start:end], dtype="<f4")
        found[name] = numbers.reshape(entry["shape"])
    return found


class Graph:
    """Collects nodes and initialisers of an ONNX graph."""

    def __init__(self, weights):
        self.weights = weights
        self.nodes = []
        self.initialisers = []

    def node(self, kind, inputs, **attributes):
        output = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, name, values):
        values = numpy.ascontiguousarray(values, dtype=numpy.float32)
        self.initialisers.append(numpy_helper.from_array(values, name))
        return name

    def conv(self, x, name, inputs, kernel, stride):
        # [line, column, input channel | bias; output channel], as Switchyard writes it.
        rows = self.weights[f"{name}.weight"]
        weight = rows[:-1].reshape(kernel, kernel, inputs, -1).transpose(3, 2, 0, 1)
        names = [self.constant(f"{name}.w", weight), self.constant(f"{name}.b", rows[-1])]
        side = (kernel - 1) // 2
        return self.node(
            "Conv",
            [x, *names],
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[side] * 4,
        )

    def relu(self, x):
        return self.node("Relu", [x])


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
    x = graph.node("Flatten", [graph.node("GlobalAveragePool", [x])])
    head = f"exit{len(spec['groups'])}"
    names = [graph.constant(f"{head}.{part}", weights[f"{head}.{part}"]) for part in ("weight", "bias")]
    x = graph.node("Gemm", [x, *names])
    side = spec["size"]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, side, side])]
    outputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", spec["classes"]])]
    made = helper.make_graph(graph.nodes, "network", inputs, outputs, graph.initialisers)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model.SerializeToString()


class Engines:
    def __init__(self, folder):
        self.folder = folder
        self.sessions = {}

    def session(self, name, threads):
        if (name, threads) not in self.sessions:
            spec = json.loads((self.folder / f"{name}.json").read_text())
            weights = tensors(self.folder / f"{name}.safetensors")
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            # Threads that wait by spinning would take the other engine's time.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            self.sessions[name, threads] = onnxruntime.InferenceSession(
                network(spec, weights), options, providers=["CPUExecutionProvider"]
            )
        return self.sessions[name, threads]

    def input(self, name, batch):
        spec = json.loads((self.folder / f"{name}.json").read_text())
        numbers = numpy.fromfile(self.folder / f"{name}.input", dtype="<f4")
        images = numbers.reshape(-1, 3, spec["size"], spec["size"])
        return {"x": numpy.ascontiguousarray(images[:batch])}

    def answer(self, request, *rest):
        if request == "versions":
            return {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}
        if request == "save":
            name, file = rest
            spec = json.loads((self.folder / f"{name}.json").read_text())
            weights = tensors(self.folder / f"{name}.safetensors")
            return pathlib.Path(file).write_bytes(network(spec, weights))
        if request == "logits":
            name, batch = rest
            logits = self.session(name, 1).run(None, self.input(name, int(batch)))[0]
            return logits.flatten().tolist()
        name, batch, threads, runs = rest
        session, feed = self.session(name, int(threads)), self.input(name, int(batch))
        times = []
        for _ in range(int(runs)):
            start = time.perf_counter(), time.process_time()
            session.run(None, feed)
            end = time.perf_counter(), time.process_time()
            times.append([1e3 * (end[i] - start[i]) for i in range(2)])
        return times


def main():
    engines = Engines(pathlib.Path(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(engines.answer(*line.split())), flush=True)


if __name__ == "__main__":
    main()
