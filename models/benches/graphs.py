"""ONNX graphs from Switchyard's weights, and their times in onnxruntime."""

import json
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

    def constant(self, name, values, kind=numpy.float32):
        values = numpy.ascontiguousarray(values, dtype=kind)
        self.initialisers.append(numpy_helper.from_array(values, name))
        return name

    def integers(self, *values):
        return self.constant(f"integers{len(self.initialisers)}", values, numpy.int64)

    def reshape(self, x, *shape):
        return self.node("Reshape", [x, self.integers(*shape)])

    def convolve(self, x, name, weight, bias, **attributes):
        """`weight` is [output channel, input channel of a group, positions ...]."""
        names = [self.constant(f"{name}.w", weight), self.constant(f"{name}.b", bias)]
        return self.node("Conv", [x, *names], kernel_shape=weight.shape[2:], **attributes)

    def conv(self, x, name, inputs, kernel, stride):
        """A convolution with square windows."""
        # [line, column, input channel | bias; output channel], as Switchyard writes it.
        rows = self.weights[f"{name}.weight"]
        weight = rows[:-1].reshape(kernel, kernel, inputs, -1).transpose(3, 2, 0, 1)
        side = (kernel - 1) // 2
        return self.convolve(x, name, weight, rows[-1], strides=[stride] * 2, pads=[side] * 4)

    def depthwise(self, x, name, kernel, stride):
        """A window of weights per channel; `kernel` and `stride` are lines and columns."""
        # [line, column | bias; channel].
        rows = self.weights[f"{name}.weight"]
        channels = rows.shape[1]
        weight = rows[:-1].T.reshape(channels, 1, *kernel)
        sides = [(size - 1) // 2 for size in kernel]
        return self.convolve(x, name, weight, rows[-1], group=channels, strides=stride, pads=sides * 2)

    def slice(self, x, axis, start, end, step=1):
        return self.node("Slice", [x, *map(self.integers, (start, end, axis, step))])

    def mean(self, x):
        """[n, channels, lines, columns] to [n, channels]."""
        return self.node("Flatten", [self.node("GlobalAveragePool", [x])])

    def relu(self, x):
        return self.node("Relu", [x])

    def dense(self, x, name, order=lambda rows: rows):
        """A linear map of feature vectors; `order` moves the rows of its weights."""
        weight, bias = (self.weights[f"{name}.{part}"] for part in ("weight", "bias"))
        names = [self.constant(f"{name}.weight", order(weight)), self.constant(f"{name}.bias", bias)]
        return self.node("Gemm", [x, *names])

    def model(self, x, shape, classes):
        """The graph from its input `x` [n, *shape] to the node `x` [n, classes]."""
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])]
        outputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", classes])]
        made = helper.make_graph(self.nodes, "network", inputs, outputs, self.initialisers)
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        return model.SerializeToString()


def session(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait by spinning would take the other engine's time.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def times(session, x, runs):
    """Milliseconds of each run on the input `x`: by the clock, and of CPU."""
    # Bound once: a run does not pay for Python's arguments.
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output(session.get_outputs()[0].name)
    times = []
    for _ in range(runs):
        start = time.perf_counter(), time.process_time()
        session.run_with_iobinding(binding)
        end = time.perf_counter(), time.process_time()
        times.append([1e3 * (end[i] - start[i]) for i in range(2)])
    return times


def serve(answer):
    """Answers each line of standard input with one line of JSON."""
    for line in sys.stdin:
        print(json.dumps(answer(*line.split())), flush=True)


def versions():
    return {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}
