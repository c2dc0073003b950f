"""mlserver with onnxruntime: `python graphs.py PORT GRAPHS`.

Needs `serve.py`'s environment, and onnxruntime in it. Tensors come in base64: mlserver has no binary
tensor data. Texts of different lengths cannot be in one of its batches.
"""

import asyncio
import base64
import pathlib
import sys

import numpy as np
from mlserver import MLModel, MLServer
from mlserver.codecs import NumpyCodec
from mlserver.settings import ModelSettings, Settings
from mlserver.types import InferenceRequest, InferenceResponse

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from graphs import BATCH_MAX, NAMES, Graph  # noqa: E402

PORT, FOLDER = int(sys.argv[1]), sys.argv[2]


class Onnx(MLModel):
    async def load(self) -> bool:
        self.graph = Graph(FOLDER, self.name)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        each = payload.inputs[0].data
        shape = [-1 if size is None else size for size in self.graph.shape]
        rows = [np.frombuffer(base64.b64decode(text), self.graph.dtype).reshape(shape) for text in each]
        answer = self.graph.run(np.stack(rows))
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", answer)])


async def main():
    # One process: it has one core.
    settings = Settings(
        host="127.0.0.1",
        http_port=PORT,
        grpc_port=PORT + 1,
        metrics_port=PORT + 2,
        parallel_workers=0,
        debug=False,
    )
    models = []
    for name in NAMES:
        batches = {"max_batch_size": BATCH_MAX, "max_batch_time": 0.0005} if name != "minilm" else {}
        models.append(ModelSettings(name=name, implementation=Onnx, **batches))
    await MLServer(settings).start(models_settings=models)


asyncio.run(main())
