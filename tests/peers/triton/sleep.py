"""Real Triton whose models take a known time: `python sleep.py PORT FOLDER BATCH_MAX NAME=BASE_MS,ROW_MS...`.

A batch of n rows takes BASE_MS + n * ROW_MS. The models of a server take turns, so that its capacity is that
of one worker. They sleep: several servers on one machine do not take each other's processor. Class 0 of an
answer is the first number of its row, so that a client knows its own answer.

The models are in Triton's Python backend. Each has two instances, of which
one computes: with one instance a batch that comes at the end of another sometimes waits 500 ms.

Needs `pip install nvidia-pytriton==0.7.0 numpy`. FOLDER gets the models.
"""

import sys
from pathlib import Path

from backend import serve

CONFIG = """
name: "{name}"
backend: "python"
max_batch_size: {batch_max}
input [ {{ name: "x", data_type: TYPE_FP32, dims: [187] }} ]
output [ {{ name: "probabilities", data_type: TYPE_FP32, dims: [7] }} ]
instance_group [ {{ kind: KIND_CPU, count: 2 }} ]
dynamic_batching {{
  # A request may say how long it waits at most, in microseconds: `timeout`. It only shortens the default, an hour.
  default_queue_policy {{
    timeout_action: REJECT
    default_timeout_microseconds: 3600000000
    allow_timeout_override: true
  }}
}}
"""

MODEL = """
import fcntl
import time

import numpy as np
import triton_python_backend_utils as utils


class TritonPythonModel:
    def initialize(self, _):
        self.turn = open("{turn}", "w")

    def execute(self, requests):
        inputs = [utils.get_input_tensor_by_name(r, "x").as_numpy() for r in requests]
        rows = sum(len(x) for x in inputs)
        fcntl.flock(self.turn, fcntl.LOCK_EX)
        time.sleep(({base_ms} + {row_ms} * rows) / 1e3)
        fcntl.flock(self.turn, fcntl.LOCK_UN)
        return [self.answer(x) for x in inputs]

    def answer(self, x):
        probabilities = np.zeros((len(x), 7), np.float32)
        probabilities[:, 0] = x[:, 0]
        probabilities[:, 1] = 1 - x[:, 0]
        return utils.InferenceResponse([utils.Tensor("probabilities", probabilities)])
"""

port, folder, batch_max = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
models = []
for argument in sys.argv[4:]:
    name, times = argument.split("=")
    base_ms, row_ms = times.split(",")
    config = CONFIG.format(name=name, batch_max=batch_max)
    code = MODEL.format(turn=folder / "turn", base_ms=float(base_ms), row_ms=float(row_ms))
    models.append((name, config, code))
serve(port, folder, models)
