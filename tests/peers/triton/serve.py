"""Real Triton with the model of the race in its Python backend: `python serve.py PORT ZOO`.

Needs `pip install nvidia-pytriton==0.7.0 safetensors numpy` in an environment of its own. ZOO/triton gets its
files. Without a queue policy, for the reason in `graphs.py`.
"""

import shutil
import sys
from pathlib import Path

from backend import serve

CONFIG = """
name: "mlp"
backend: "python"
max_batch_size: 64
input [ { name: "x", data_type: TYPE_FP32, dims: [187] } ]
output [ { name: "probabilities", data_type: TYPE_FP32, dims: [7] } ]
instance_group [ { kind: KIND_CPU, count: 1 } ]
dynamic_batching {}
"""

MODEL = """
import numpy as np
import triton_python_backend_utils as utils
from safetensors.numpy import load_file

W = load_file("{zoo}/mlp/only/weights.safetensors")


def probabilities(x):
    hidden = np.maximum(x @ W["layer0.weight"] + W["layer0.bias"], 0.0)
    logits = hidden @ W["head.weight"] + W["head.bias"]
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)


class TritonPythonModel:
    def execute(self, requests):
        inputs = [utils.get_input_tensor_by_name(r, "x").as_numpy() for r in requests]
        answers = probabilities(np.concatenate(inputs))
        ends = np.cumsum([len(x) for x in inputs])[:-1]
        return [
            utils.InferenceResponse([utils.Tensor("probabilities", y)]) for y in np.split(answers, ends)
        ]
"""

port, zoo = int(sys.argv[1]), Path(sys.argv[2]).resolve()
shutil.rmtree(zoo / "triton", ignore_errors=True)
serve(port, zoo / "triton", [("mlp", CONFIG, MODEL.replace("{zoo}", str(zoo)))])
