"""The models of rivals.rs as ONNX graphs: `export.py ZOO GRAPHS TEI` writes GRAPHS/NAME.onnx.

TEI becomes the encoder as text-embeddings-inference takes it. The other graphs' inputs are `x`, for texts `ids`; their outputs are `y`: what Switchyard answers with.
"""

import json
import pathlib
import shutil
import sys

import onnx
from onnx import TensorProto, helper

ZOO, GRAPHS, TEI = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(pathlib.Path(__file__).parents[4] / "models/benches"))
import engines  # noqa: E402
import minilm  # noqa: E402


def save(name, model, last, attributes):
    """The graph with one more operator, of the name `last`, behind its only output."""
    graph = model.graph
    graph.node.append(helper.make_node(last, [graph.output[0].name], ["y"], **attributes))
    graph.output[0].name = "y"
    onnx.save(model, GRAPHS / f"{name}.onnx")


def perceptron(weights):
    graph = engines.Graph(weights)
    dense = lambda x, name: graph.node(  # noqa: E731
        "Gemm", [x, *(graph.constant(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))]
    )
    logits = dense(graph.relu(dense("x", "layer0")), "head")
    shapes = weights["layer0.weight"].shape[0], weights["head.bias"].shape[0]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])]
        for name, width in zip(("x", logits), shapes)
    ]
    made = helper.make_graph(graph.nodes, "perceptron", *ends, graph.initialisers)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


folder = ZOO / "resnet50"
network = engines.network(
    json.loads((folder / "resnet50.json").read_text()), engines.tensors(folder / "resnet50.safetensors")
)
save("resnet50", onnx.load_from_string(network), "Softmax", {"axis": 1})
folder = ZOO / "minilm/only"
config, weights = json.loads((folder / "config.json").read_text()), engines.tensors(folder / "model.safetensors")
encoder = onnx.load_from_string(minilm.encoder(config, weights))
save("minilm", encoder, "LpNormalization", {"axis": 1, "p": 2})
TEI.mkdir(exist_ok=True)
(TEI / "model.onnx").write_bytes(minilm.encoder(config, weights, masked=True))
(TEI / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
shutil.copy(folder / "tokenizer.json", TEI)
save("mlp", perceptron(engines.tensors(ZOO / "mlp/only/weights.safetensors")), "Softmax", {"axis": 1})
