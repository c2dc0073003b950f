"""Real Triton with onnxruntime in its Python backend: `python graphs.py PORT GRAPHS`.

Needs `serve.py`'s environment, and onnxruntime in it. Requests name their timeouts themselves; one
that has waited for longer is refused.
"""

import pathlib
import signal
import sys

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, QueuePolicy, Tensor, TimeoutAction
from pytriton.triton import Triton, TritonConfig, TritonSecurityConfig

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from graphs import BATCH_MAX, NAMES, Graph  # noqa: E402

PORT, FOLDER = int(sys.argv[1]), sys.argv[2]


def loads_at_first(name):
    """A session does not survive the fork of pytriton's worker."""
    loaded = []

    @batch
    def infer(**inputs):
        if not loaded:
            loaded.append(Graph(FOLDER, name))
        return {"y": loaded[0].run(next(iter(inputs.values())))}

    return infer


# So that Triton's own processes end with this one: without it they are left behind.
signal.signal(signal.SIGTERM, signal.default_int_handler)
with Triton(
    config=TritonConfig(http_port=PORT, grpc_port=PORT + 1, metrics_port=PORT + 2),
    security_config=TritonSecurityConfig(restricted_endpoints=[]),
) as triton:
    for name in NAMES:
        graph = Graph(FOLDER, name)
        shape = tuple(size or -1 for size in graph.shape)
        policy = QueuePolicy(timeout_action=TimeoutAction.REJECT, allow_timeout_override=True)
        batcher = DynamicBatcher(max_queue_delay_microseconds=100, default_queue_policy=policy)
        triton.bind(
            model_name=name,
            infer_func=loads_at_first(name),
            inputs=[Tensor(name=graph.input, dtype=graph.dtype, shape=shape)],
            outputs=[Tensor(name="y", dtype=np.float32, shape=(-1,))],
            config=ModelConfig(max_batch_size=BATCH_MAX, batcher=batcher),
        )
    triton.serve()
