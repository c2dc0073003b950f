"""Reference outputs of BERT-type encoders in float64 NumPy: `python bert.py > bert.json`.

Written from the papers and the published checkpoints' tensor names; texts are run one by one
without padding, so that agreement says that the server's mask hides all of it.
"""

import json
import math

import numpy as np

from common import fan_in_scale, tensor

CLS, SEP = 2, 3

# Sizes as config.json has them; `texts` are ids of words, without [CLS] and [SEP].
TINY = dict(hidden=64, heads=4, wide=128, layers=3, vocabulary=100, positions=40, eps=1e-12)
TEXTS = [[4, 5, 6], [7], [17, 99, 17, 42, 8, 9, 10, 11, 12, 13, 14], [50, 51, 52, 53, 54, 55]]
# Pairs of texts, as the tokenizer cuts them to 13 tokens: the longer text first.
PAIRS = [([4, 5, 6], [7, 8]), ([9], []), ([10, 11, 12, 13], [20, 21, 22, 23, 24, 25])]
CASES = {
    "bert-embedding": dict(TINY, family="bert", head="embedding", activation="gelu"),
    "bert-classification": dict(TINY, family="bert", head="classes", activation="gelu_new"),
    "roberta-classification": dict(TINY, family="roberta", head="classes", activation="gelu"),
    "distilbert-classification": dict(TINY, family="distilbert", head="classes", activation="relu"),
    "bert-pair": dict(TINY, family="bert", head="score", activation="gelu"),
    "roberta-pair": dict(TINY, family="roberta", head="score", activation="gelu"),
    "distilbert-pair": dict(TINY, family="distilbert", head="score", activation="gelu"),
    # all-MiniLM-L6-v2 but for the vocabulary.
    "minilm-embedding": dict(
        hidden=384, heads=12, wide=1536, layers=6, vocabulary=100, positions=512, eps=1e-12,
        family="bert", head="embedding", activation="gelu",
    ),
}
CLASSES = 5
BERT = dict(
    layer="encoder.layer", query="attention.self.query", key="attention.self.key",
    value="attention.self.value", attended="attention.output.dense",
    norm1="attention.output.LayerNorm", up="intermediate.dense", down="output.dense",
    norm2="output.LayerNorm",
)
NAMES = {
    "bert": BERT,
    "roberta": BERT,
    "distilbert": dict(
        layer="transformer.layer", query="attention.q_lin", key="attention.k_lin",
        value="attention.v_lin", attended="attention.out_lin", norm1="sa_layer_norm",
        up="ffn.lin1", down="ffn.lin2", norm2="output_layer_norm",
    ),
}

erf = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1.0 + erf(x / math.sqrt(2.0))),
    "gelu_new": lambda x: 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0.0),
}


def dense(x, name, output):
    width = x.shape[-1]
    weight = tensor(f"{name}.weight", (output, width), fan_in_scale(width))
    return x @ weight.T + tensor(f"{name}.bias", (output,), 0.125)


def norm(x, name, eps):
    width = x.shape[-1]
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    scale = tensor(f"{name}.weight", (width,), 0.25, 1.0)
    return scaled * scale + tensor(f"{name}.bias", (width,), 0.125)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def run(case, words, second=None):
    ids = [CLS] + words + [SEP]
    segments = [0] * len(ids)
    if second is not None:
        ids += second + [SEP]
        # RoBERTa has a single segment.
        segments += [int(case["family"] == "bert")] * (len(second) + 1)
    classes = 1 if case["head"] == "score" else CLASSES
    hidden, heads, eps = case["hidden"], case["heads"], case["eps"]
    names = NAMES[case["family"]]
    # RoBERTa's positions count on from its padding token, 1.
    first = 2 if case["family"] == "roberta" else 0
    table = lambda part, rows: tensor(f"embeddings.{part}.weight", (rows, hidden), 0.5)
    x = table("word_embeddings", case["vocabulary"])[ids]
    x = x + table("position_embeddings", case["positions"])[first : first + len(ids)]
    if case["family"] != "distilbert":
        x = x + table("token_type_embeddings", 2)[segments]
    x = norm(x, "embeddings.LayerNorm", eps)
    for i in range(case["layers"]):
        at = lambda part: f"{names['layer']}.{i}.{names[part]}"
        split = lambda y: y.reshape(len(ids), heads, hidden // heads).transpose(1, 0, 2)
        query, key, value = (split(dense(x, at(p), hidden)) for p in ("query", "key", "value"))
        shares = softmax(query @ key.transpose(0, 2, 1) / math.sqrt(hidden // heads))
        mixed = (shares @ value).transpose(1, 0, 2).reshape(len(ids), hidden)
        x = norm(x + dense(mixed, at("attended"), hidden), at("norm1"), eps)
        wide = ACTIVATIONS[case["activation"]](dense(x, at("up"), case["wide"]))
        x = norm(x + dense(wide, at("down"), hidden), at("norm2"), eps)
    if case["head"] == "embedding":
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)
    if case["family"] == "bert":
        return dense(np.tanh(dense(x[0], "pooler.dense", hidden)), "classifier", classes)
    if case["family"] == "roberta":
        return dense(np.tanh(dense(x[0], "classifier.dense", hidden)), "classifier.out_proj", classes)
    return dense(np.maximum(dense(x[0], "pre_classifier", hidden), 0.0), "classifier", classes)


if __name__ == "__main__":
    recorded = {
        name: [[round(float(v), 9) for v in run(case, *texts)] for texts in inputs]
        for name, case in CASES.items()
        for inputs in [PAIRS if case["head"] == "score" else [(words,) for words in TEXTS]]
    }
    print(json.dumps(recorded))
