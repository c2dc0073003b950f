"""The encoder of minilm.rs in onnxruntime, timed on request.

    minilm.py FOLDER

FOLDER is a variant in Hugging Face's layout: config.json and model.safetensors. Reads requests from
standard input, one a line, answers each with one line of JSON:

    versions
    embed BATCH TOKENS      the embeddings of texts whose token t of text b is (31 b + 7 t) % 997
    time BATCH TOKENS RUNS  milliseconds of each run on one thread: by the clock, and of CPU

Attention and GELU are the operators that onnxruntime's own optimiser puts into published encoders.
"""

import json
import pathlib
import sys
import time

import numpy
import onnxruntime
from graphs import Graph, tensors
from onnx import TensorProto, helper, numpy_helper

FUSED = "com.microsoft"


def encoder(config, weights, masked=False):
    """Token ids [batch, tokens] to the mean of the last hidden states.

    `masked`: with a mask of padding, to the last hidden states, under the names of Hugging Face's exports.
    """
    ids, mask, states = ("input_ids", "attention_mask", "last_hidden_state") if masked else ("ids", None, None)
    graph = Graph(weights)

    def table(name, values, kind=numpy.float32):
        values = numpy.ascontiguousarray(values, dtype=kind)
        graph.initialisers.append(numpy_helper.from_array(values, name))
        return name

    def dense(x, name, names):
        weight = numpy.concatenate([weights[f"{n}.weight"] for n in names]).T
        bias = numpy.concatenate([weights[f"{n}.bias"] for n in names])
        return [x, table(f"{name}.w", weight), table(f"{name}.b", bias)]

    def product(x, name, names):
        x, weight, bias = dense(x, name, names)
        return graph.node("Add", [graph.node("MatMul", [x, weight]), bias])

    def norm(x, name):
        parts = [table(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return graph.node("LayerNormalization", [x, *parts], epsilon=config["layer_norm_eps"])

    words = table("words", weights["embeddings.word_embeddings.weight"])
    types = weights["embeddings.token_type_embeddings.weight"]
    positions = table("positions", weights["embeddings.position_embeddings.weight"] + types[0])
    shape = graph.node("Shape", [ids])
    tokens = graph.node("Slice", [shape, table("one", [1], numpy.int64), table("two", [2], numpy.int64)])
    of_text = graph.node("Slice", [positions, table("zero", [0], numpy.int64), tokens])
    x = graph.node("Add", [graph.node("Gather", [words, ids]), of_text])
    x = norm(x, "embeddings.LayerNorm")
    padding = [graph.node("Cast", [mask], to=TensorProto.INT32)] if masked else []
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}"
        qkv = [f"{at}.attention.self.{part}" for part in ("query", "key", "value")]
        heads = config["num_attention_heads"]
        mixed = graph.node("Attention", dense(x, f"{at}.qkv", qkv) + padding, num_heads=heads, domain=FUSED)
        mixed = product(mixed, f"{at}.attended", [f"{at}.attention.output.dense"])
        x = norm(graph.node("Add", [x, mixed]), f"{at}.attention.output.LayerNorm")
        wide, up, bias = dense(x, f"{at}.up", [f"{at}.intermediate.dense"])
        wide = graph.node("BiasGelu", [graph.node("MatMul", [wide, up]), bias], domain=FUSED)
        narrow = product(wide, f"{at}.down", [f"{at}.output.dense"])
        x = norm(graph.node("Add", [x, narrow]), f"{at}.output.LayerNorm")
    width, sizes = config["hidden_size"], ["batch", "tokens"]
    if masked:
        graph.nodes[-1].output[0] = states
        answer, shape = states, [*sizes, width]
    else:
        answer, shape = graph.node("ReduceMean", [x], axes=[1], keepdims=0), ["batch", width]
    inputs = [helper.make_tensor_value_info(put, TensorProto.INT64, sizes) for put in filter(None, (ids, mask))]
    outputs = [helper.make_tensor_value_info(answer, TensorProto.FLOAT, shape)]
    made = helper.make_graph(graph.nodes, "encoder", inputs, outputs, graph.initialisers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=9).SerializeToString()


def ids(batch, tokens):
    texts, places = numpy.arange(batch)[:, None], numpy.arange(tokens)[None, :]
    return {"ids": ((31 * texts + 7 * places) % 997).astype(numpy.int64)}


def main():
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        encoder(config, tensors(folder / "model.safetensors")), options, providers=["CPUExecutionProvider"]
    )

    def answer(request, *sizes):
        if request == "versions":
            return {"onnxruntime": onnxruntime.__version__}
        batch, tokens, *runs = map(int, sizes)
        feed = ids(batch, tokens)
        if request == "embed":
            mean = session.run(None, feed)[0]
            return (mean / numpy.linalg.norm(mean, axis=1, keepdims=True)).flatten().tolist()
        times = []
        for _ in range(runs[0]):
            start = time.perf_counter(), time.process_time()
            session.run(None, feed)
            end = time.perf_counter(), time.process_time()
            times.append([1e3 * (end[i] - start[i]) for i in range(2)])
        return times

    for line in sys.stdin:
        print(json.dumps(answer(*line.split())), flush=True)


if __name__ == "__main__":
    main()
