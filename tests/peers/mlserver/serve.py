"""mlserver with the model of the race: `python serve.py PORT ZOO`.

Needs `pip install mlserver==1.7.1 safetensors numpy` in an environment of its own. It has no binary
tensor data: in that part of the race it refuses every request.
"""

import asyncio
import sys

import numpy as np
from mlserver import MLModel, MLServer
from mlserver.codecs import NumpyCodec
from mlserver.settings import ModelSettings, Settings
from mlserver.types import InferenceRequest, InferenceResponse
from safetensors.numpy import load_file

PORT, ZOO = int(sys.argv[1]), sys.argv[2]


class Perceptron(MLModel):
    async def load(self) -> bool:
        self.weights = load_file(f"{ZOO}/mlp/only/weights.safetensors")
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        x = NumpyCodec.decode_input(payload.inputs[0])
        hidden = np.maximum(x @ self.weights["layer0.weight"] + self.weights["layer0.bias"], 0.0)
        logits = hidden @ self.weights["head.weight"] + self.weights["head.bias"]
        scores = np.exp(logits - logits.max(axis=1, keepdims=True))
        scores = (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
        outputs = [NumpyCodec.encode_output("probabilities", scores)]
        return InferenceResponse(model_name=self.name, outputs=outputs)


async def main():
    # One process: handing work to others costs more than this model takes.
    settings = Settings(
        host="127.0.0.1",
        http_port=PORT,
        grpc_port=PORT + 1,
        metrics_port=PORT + 2,
        parallel_workers=0,
        debug=False,
    )
    model = ModelSettings(
        name="mlp",
        implementation=Perceptron,
        max_batch_size=64,
        max_batch_time=0.0005,
    )
    await MLServer(settings).start(models_settings=[model])


asyncio.run(main())
