"""Real Triton whose models take a known time: `python sleep.py PORT FOLDER BATCH_MAX NAME=BASE_MS,ROW_MS...`.

A batch of n rows takes BASE_MS + n * ROW_MS. The models of a server take turns, so that its capacity is that
of one worker. They sleep: several servers on one machine do not take each other's processor. Class 0 of an
answer is the first number of its row, so that a client knows its own answer.

Triton runs the models in its Python backend, without pytriton between them. Each has two instances, of which
one computes: with one instance a batch that comes at the end of another sometimes waits 500 ms.

Needs `pip install nvidia-pytriton==0.7.0 numpy`. FOLDER gets the models.
"""

import os
import sys
import sysconfig
from pathlib import Path

import pytriton

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
package = Path(pytriton.__file__).parent
triton = package / "tritonserver"

# The backend, next to the program that runs models with this version of Python.
backend = folder / "backends" / "python"
backend.mkdir(parents=True)
for file in (triton / "backends" / "python").iterdir():
    (backend / file.name).symlink_to(file)
version = f"{sys.version_info.major}.{sys.version_info.minor}"
stub = "triton_python_backend_stub"
(backend / stub).symlink_to(triton / "python_backend_stubs" / version / stub)

for argument in sys.argv[4:]:
    name, times = argument.split("=")
    base_ms, row_ms = times.split(",")
    model = folder / "models" / name
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(CONFIG.format(name=name, batch_max=batch_max))
    code = MODEL.format(turn=folder / "turn", base_ms=float(base_ms), row_ms=float(row_ms))
    (model / "1" / "model.py").write_text(code)

libraries = [sysconfig.get_config_var("LIBDIR"), str(package.parent / "nvidia_pytriton.libs")]
environment = os.environ | {
    "LD_LIBRARY_PATH": ":".join(libraries),
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYTHONPATH": str(package.parent),
}
program = str(triton / "bin" / "tritonserver")
options = {
    "model-repository": folder / "models",
    "backend-directory": folder / "backends",
    # Servers on one machine have memory of their own.
    "backend-config": f"python,shm-region-prefix-name=sleep{port}-",
    "http-port": port,
    "grpc-port": port + 1,
    "metrics-port": port + 2,
}
os.execve(program, [program, *(f"--{key}={value}" for key, value in options.items())], environment)
