"""Exports a model with random weights, as its framework's users do, and an input for it.

`python export.py MODEL FOLDER` writes FOLDER/source (a file or folder for `switchyard add`),
FOLDER/reference.onnx for onnxruntime, FOLDER/inputs.npz, and FOLDER/case.json.
"""

import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["YOLO_OFFLINE"] = "1"

import numpy as np

OPSET = 18


def torch_export(model, inputs, file, names, outputs, dynamic):
    import torch

    model.eval()
    torch.onnx.export(
        model,
        tuple(inputs.values()),
        file,
        input_names=names,
        output_names=outputs,
        opset_version=OPSET,
        dynamic_shapes=dynamic,
        external_data=False,
        dynamo=True,
    )


def image_model(model, folder, size, outputs):
    """A network of images; the batch axis is open."""
    import torch

    batch = torch.export.Dim("batch", min=1, max=64)
    image = torch.randn(2, 3, size, size)
    file = folder / "source.onnx"
    torch_export(model, {"image": image}, file, ["image"], outputs, ({0: batch},))
    inputs = {"image": np.random.randn(1, 3, size, size).astype(np.float32)}
    return file, file, inputs, []


def settled(model, size):
    """Without statistics of batches, deep networks of random weights answer with almost constant values."""
    import torch

    model.train()
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(4, 3, size, size))
    return model.eval()


def spread(model, size):
    """Draws the last layer, which may begin as zeros, so that logits differ by about 1."""
    import torch

    head = [part for part in model.modules() if isinstance(part, torch.nn.Linear)][-1]
    head.reset_parameters()
    with torch.no_grad():
        scale = 1 / model(torch.randn(2, 3, size, size)).std()
        head.weight *= scale
        head.bias *= scale
    return model


def torchvision(name):
    def export(folder):
        import torchvision

        model = spread(settled(torchvision.models.get_model(name, weights=None), 224), 224)
        return image_model(model, folder, 224, ["logits"])

    return export


def unet(folder):
    import torch
    from torch import nn

    def block(inputs, outputs):
        convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        return nn.Sequential(
            convolution, nn.BatchNorm2d(outputs), nn.ReLU(), second, nn.BatchNorm2d(outputs), nn.ReLU()
        )

    class UNet(nn.Module):
        def __init__(self, widths=(16, 32, 64, 128)):
            super().__init__()
            inputs = (3,) + widths[:-1]
            self.down = nn.ModuleList(block(a, b) for a, b in zip(inputs, widths))
            pairs = list(zip(widths[::-1], widths[-2::-1]))
            self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs)
            self.join = nn.ModuleList(block(2 * b, b) for _, b in pairs)
            self.head = nn.Conv2d(widths[0], 4, 1)

        def forward(self, x):
            kept = []
            for i, down in enumerate(self.down):
                x = down(x if i == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for up, join, skip in zip(self.up, self.join, kept[-2::-1]):
                x = join(torch.cat([up(x), skip], dim=1))
            return self.head(x)

    return image_model(settled(UNet(), 128), folder, 128, ["mask"])


def yolo(folder):
    from ultralytics import YOLO

    model = YOLO("yolov8n.yaml").model
    model = settled(model, 320).fuse()
    head = model.model[-1]
    head.export, head.format = True, "onnx"
    return image_model(model, folder, 320, ["boxes"])


def distilbert(folder):
    import torch
    from transformers import DistilBertConfig, DistilBertModel

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = DistilBertModel(DistilBertConfig())

        def forward(self, input_ids, attention_mask):
            return self.encoder(input_ids, attention_mask).last_hidden_state

    batch, tokens = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("tokens", min=2, max=512)
    ids = torch.randint(0, 30000, (2, 32))
    names = ["input_ids", "attention_mask"]
    file = folder / "source.onnx"
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    axes = {0: batch, 1: tokens}
    torch_export(Encoder(), inputs, file, names, ["states"], (axes, axes))
    mask = np.ones((1, 64), np.int64)
    mask[0, 50:] = 0
    ids = np.random.randint(0, 30000, (1, 64))
    return file, file, {"input_ids": ids, "attention_mask": mask}, []


def minilm(folder):
    """A folder as sentence-transformers publishes it; the graph of the same weights is the reference."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + [f"word{i}" for i in range(30518)]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    config = BertConfig(
        vocab_size=len(words), hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536,
    )
    model = BertModel(config)
    source = folder / "all-MiniLM-L6-v2"
    model.save_pretrained(source)
    tokenizer.save(str(source / "tokenizer.json"))
    pooling = {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True}
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling/config.json").write_text(json.dumps(pooling))
    (source / "modules.json").write_text(json.dumps(modules))
    (source / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))

    class Sentence(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = model

        def forward(self, input_ids, attention_mask):
            states = self.encoder(input_ids, attention_mask).last_hidden_state
            weights = attention_mask.unsqueeze(-1).to(states.dtype)
            mean = (states * weights).sum(1) / weights.sum(1)
            return torch.nn.functional.normalize(mean, dim=1)

    text = " ".join(f"word{i * 7 + 3}" for i in range(62))
    ids = torch.tensor([tokenizer.encode(text).ids] * 2)
    names = ["input_ids", "attention_mask"]
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    file = folder / "reference.onnx"
    batch = torch.export.Dim("batch", min=1, max=64)
    torch_export(Sentence(), inputs, file, names, ["sentence"], ({0: batch}, {0: batch}))
    reference = {name: value[:1].numpy() for name, value in inputs.items()}
    np.savez(folder / "reference.npz", **reference)
    return source, file, {"text": np.array([[text]])}, ["reference.npz"]


def gbdt(folder):
    from skl2onnx import to_onnx
    from sklearn.datasets import make_classification
    from sklearn.ensemble import GradientBoostingClassifier

    x, y = make_classification(2000, 30, n_informative=12, n_classes=3, random_state=1)
    x = x.astype(np.float32)
    model = GradientBoostingClassifier(n_estimators=100, random_state=1).fit(x, y)
    file = folder / "source.onnx"
    graph = to_onnx(model, x[:1], options={"zipmap": False})
    file.write_bytes(graph.SerializeToString())
    return file, file, {"X": x[5:6]}, []


def pipeline(folder):
    import pandas as pd
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    chance = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "age": chance.integers(18, 90, 2000).astype(np.float32),
            "income": chance.normal(40, 12, 2000).astype(np.float32),
            "city": chance.choice(["Ulm", "Köln", "Bonn"], 2000),
            "plan": chance.choice(["free", "pro"], 2000),
        }
    )
    y = (table["age"] + table["income"] > 90) ^ (table["plan"] == "pro")
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age", "income"]),
            ("texts", OneHotEncoder(handle_unknown="ignore"), ["city", "plan"]),
        ]
    )
    model = Pipeline([("columns", columns), ("model", LogisticRegression())]).fit(table, y.astype(int))
    types = [
        (name, StringTensorType([None, 1]) if name in ("city", "plan") else FloatTensorType([None, 1]))
        for name in table.columns
    ]
    file = folder / "source.onnx"
    graph = to_onnx(model, initial_types=types, options={"zipmap": False})
    file.write_bytes(graph.SerializeToString())
    row = table.iloc[7:8]
    inputs = {name: row[[name]].to_numpy() for name in ("age", "income")}
    inputs |= {name: np.array([[row[name].iloc[0]]]) for name in ("city", "plan")}
    return file, file, inputs, []


MODELS = {
    "resnet50": torchvision("resnet50"),
    "yolov8n": yolo,
    "minilm": minilm,
    "distilbert": distilbert,
    "gbdt": gbdt,
    "pipeline": pipeline,
    "mobilenet-v3": torchvision("mobilenet_v3_large"),
    "efficientnet-b0": torchvision("efficientnet_b0"),
    "vit-b-16": torchvision("vit_b_16"),
    "unet": unet,
}


def main():
    name, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    np.random.seed(1)
    if name not in ("gbdt", "pipeline"):
        import torch

        torch.manual_seed(1)
        torch.set_num_threads(1)
    source, reference, inputs, other = MODELS[name](folder)
    np.savez(folder / "inputs.npz", **inputs)
    case = {"source": str(source), "reference": str(reference), "inputs": list(inputs)}
    case["reference_inputs"] = str(folder / (other[0] if other else "inputs.npz"))
    (folder / "case.json").write_text(json.dumps(case))


if __name__ == "__main__":
    main()
