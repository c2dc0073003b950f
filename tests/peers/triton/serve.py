"""Real Triton with the model of the race: `python serve.py PORT ZOO`.

Needs `pip install nvidia-pytriton==0.7.0 safetensors numpy` in an environment of its own, and that
Python's `lib` folder in LD_LIBRARY_PATH.
"""

import signal
import sys

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig, TritonSecurityConfig
from safetensors.numpy import load_file

PORT, ZOO = int(sys.argv[1]), sys.argv[2]
WEIGHTS = load_file(f"{ZOO}/mlp/only/weights.safetensors")


# So that Triton's own processes end with this one: without it they are left behind.
signal.signal(signal.SIGTERM, signal.default_int_handler)


@batch
def infer(x):
    hidden = np.maximum(x @ WEIGHTS["layer0.weight"] + WEIGHTS["layer0.bias"], 0.0)
    logits = hidden @ WEIGHTS["head.weight"] + WEIGHTS["head.bias"]
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return {"probabilities": (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)}


with Triton(
    config=TritonConfig(http_port=PORT, grpc_port=PORT + 1, metrics_port=PORT + 2),
    security_config=TritonSecurityConfig(restricted_endpoints=[]),
) as triton:
    triton.bind(
        model_name="mlp",
        infer_func=infer,
        inputs=[Tensor(name="x", dtype=np.float32, shape=(187,))],
        outputs=[Tensor(name="probabilities", dtype=np.float32, shape=(7,))],
        config=ModelConfig(max_batch_size=64, batcher=DynamicBatcher(max_queue_delay_microseconds=100)),
    )
    triton.serve()
