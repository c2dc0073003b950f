"""The graphs of `cargo xtask bench rivals` in onnxruntime, for the peers of Python.

One thread a graph, as every contender has one core. Requests of one shape run in one batch.
"""

import numpy as np
import onnxruntime

NAMES = ["resnet50", "minilm", "mlp"]
BATCH_MAX = 8


class Graph:
    def __init__(self, folder, name):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        file = f"{folder}/{name}.onnx"
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        put = self.session.get_inputs()[0]
        self.input, self.dtype = put.name, {"tensor(float)": np.float32, "tensor(int64)": np.int64}[put.type]
        # Without the batch; None where it differs from request to request.
        self.shape = [size if isinstance(size, int) else None for size in put.shape[1:]]

    def run(self, batch):
        return self.session.run(["y"], {self.input: batch})[0]

    def run_each(self, requests):
        """The answers to requests of any length, those of one length together."""
        answers = [None] * len(requests)
        by_shape = {}
        for at, request in enumerate(requests):
            by_shape.setdefault(request.shape, []).append(at)
        for members in by_shape.values():
            for at, answer in zip(members, self.run(np.stack([requests[at] for at in members]))):
                answers[at] = answer
        return answers
