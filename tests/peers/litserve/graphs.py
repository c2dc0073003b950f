"""litserve with onnxruntime: `python graphs.py PORT GRAPHS`.

Needs `pip install litserve==0.2.19 onnxruntime numpy` in an environment of its own. Tensors come in base64, in
JSON: its requests have no other form for them.
"""

import base64
import pathlib
import sys

import litserve
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from graphs import BATCH_MAX, NAMES, Graph  # noqa: E402

PORT, FOLDER = int(sys.argv[1]), sys.argv[2]


class Onnx(litserve.LitAPI):
    def __init__(self, name):
        super().__init__(max_batch_size=BATCH_MAX, batch_timeout=0.001, api_path=f"/{name}")
        self.name = name

    def setup(self, device):
        self.graph = Graph(FOLDER, self.name)

    def decode_request(self, request):
        shape = [-1 if size is None else size for size in self.graph.shape]
        return np.frombuffer(base64.b64decode(request["x"]), self.graph.dtype).reshape(shape)

    def batch(self, inputs):
        return inputs

    def predict(self, requests):
        return self.graph.run_each(requests)

    def unbatch(self, output):
        return output

    def encode_response(self, output):
        return {"y": output.tolist()}


if __name__ == "__main__":
    server = litserve.LitServer([Onnx(name) for name in NAMES], accelerator="cpu", timeout=600)
    server.run(host="127.0.0.1", port=PORT, generate_client_file=False, log_level="error")
