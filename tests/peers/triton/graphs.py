"""Real Triton with onnxruntime in its Python backend: `python graphs.py PORT GRAPHS`.

Needs `serve.py`'s environment, and onnxruntime in it. GRAPHS/triton gets its files.

Without a queue policy, so that it does not heed the timeouts of requests: with one Triton prepares no batch while an
instance works, and requests that all come in that time wait until the batcher wakes by itself, up to 500 ms.
"""

import shutil
import sys
from pathlib import Path

PEERS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PEERS))
from backend import serve  # noqa: E402
from graphs import BATCH_MAX, NAMES, Graph  # noqa: E402

CONFIG = """
name: "{name}"
backend: "python"
max_batch_size: {batch_max}
input [ {{ name: "{input}", data_type: {datatype}, dims: {dims} }} ]
output [ {{ name: "y", data_type: TYPE_FP32, dims: [-1] }} ]
instance_group [ {{ kind: KIND_CPU, count: 1 }} ]
dynamic_batching {{}}
"""

MODEL = """
import sys

sys.path.insert(0, "{peers}")
import triton_python_backend_utils as utils
from graphs import Graph


class TritonPythonModel:
    def initialize(self, _):
        self.graph = Graph("{graphs}", "{name}")

    def execute(self, requests):
        inputs = [utils.get_input_tensor_by_name(r, "{input}").as_numpy()[0] for r in requests]
        answers = self.graph.run_each(inputs)
        return [utils.InferenceResponse([utils.Tensor("y", y[None])]) for y in answers]
"""

DATATYPES = {"float32": "TYPE_FP32", "int64": "TYPE_INT64"}


def model(graphs, name):
    graph = Graph(graphs, name)
    config = CONFIG.format(
        name=name,
        batch_max=BATCH_MAX,
        input=graph.input,
        datatype=DATATYPES[graph.dtype.__name__],
        dims=[size or -1 for size in graph.shape],
    )
    return name, config, MODEL.format(peers=PEERS, graphs=graphs, name=name, input=graph.input)


port, folder = int(sys.argv[1]), Path(sys.argv[2]).resolve()
models = [model(folder, name) for name in NAMES]
shutil.rmtree(folder / "triton", ignore_errors=True)
serve(port, folder / "triton", models)
