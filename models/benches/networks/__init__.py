"""The networks of the zoo as ONNX graphs with the shipped weights, from the input `x` to the logits.

A builder takes a graph and the architecture of a model.toml. It returns the node with the logits of
the last exit and the shape of an input.
"""

import tomllib

from engines import network as resnet2d
from graphs import Graph, tensors

from .minirocket import minirocket
from .sequence import cnn1d, resnet1d
from .video import fusion, x3d
from .voice import lstm, mobilenet

BUILDERS = {builder.__name__: builder for builder in (cnn1d, fusion, lstm, minirocket, mobilenet, resnet1d, x3d)}


def network(folder):
    """The variant in a folder of the zoo as an ONNX model."""
    spec = tomllib.loads((folder / "model.toml").read_text())["architecture"]
    weights = tensors(folder / "weights.safetensors")
    if spec["kind"] == "resnet2d":
        return resnet2d(spec, weights)
    graph = Graph(weights)
    logits, shape = BUILDERS[spec["kind"]](graph, spec)
    return graph.model(logits, shape, spec["classes"])
