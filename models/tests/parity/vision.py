"""Reference outputs of torchvision's, timm's and transformers' own networks in float64, with the
names and shapes of their tensors: `python vision.py > vision.json` (torchvision 0.29, timm 1.0,
transformers 5.24).
"""

import json
import tempfile

import numpy as np
import timm
import torch
import torchvision
from safetensors.torch import load_file
from timm.models.vision_transformer import VisionTransformer
from transformers import ViTConfig, ViTForImageClassification

from common import fan_in_scale, tensor

CLASSES = 10
IMAGES = 2
VIT = dict(hidden=192, heads=3, layers=2, wide=96, patch=8, size=32)


def torchvision_vit():
    return torchvision.models.VisionTransformer(
        image_size=VIT["size"], patch_size=VIT["patch"], num_layers=VIT["layers"],
        num_heads=VIT["heads"], hidden_dim=VIT["hidden"], mlp_dim=VIT["wide"], num_classes=CLASSES,
    )


def timm_vit():
    return VisionTransformer(
        img_size=VIT["size"], patch_size=VIT["patch"], depth=VIT["layers"], num_heads=VIT["heads"],
        embed_dim=VIT["hidden"], mlp_ratio=VIT["wide"] / VIT["hidden"], num_classes=CLASSES,
    )


def transformers_vit():
    return ViTForImageClassification(ViTConfig(
        hidden_size=VIT["hidden"], num_hidden_layers=VIT["layers"], num_attention_heads=VIT["heads"],
        intermediate_size=VIT["wide"], image_size=VIT["size"], patch_size=VIT["patch"],
        num_labels=CLASSES, layer_norm_eps=1e-5,
    ))


# Lines and columns of an image, the network, and the mean of its variances: one that keeps the images
# apart, and in deep networks the activations small.
CASES = {
    "mobilenet-v3 small torchvision": (64, lambda: torchvision.models.mobilenet_v3_small(num_classes=CLASSES), 0.25),
    "mobilenet-v3 large timm same": (64, lambda: timm.create_model("tf_mobilenetv3_large_100", num_classes=CLASSES), 0.25),
    "mobilenet-v3 small timm centred": (64, lambda: timm.create_model("mobilenetv3_small_100", num_classes=CLASSES), 0.25),
    "efficientnet-v2 s torchvision": (64, lambda: torchvision.models.efficientnet_v2_s(num_classes=CLASSES), 0.375),
    "efficientnet-v2 s timm same": (72, lambda: timm.create_model("tf_efficientnetv2_s", num_classes=CLASSES), 0.375),
    "efficientnet b0 timm same": (72, lambda: timm.create_model("tf_efficientnet_b0", num_classes=CLASSES), 0.25),
    "vit torchvision": (VIT["size"], torchvision_vit, 0.25),
    "vit timm": (VIT["size"], timm_vit, 0.25),
    "vit huggingface": (VIT["size"], transformers_vit, 0.25),
}
NORM = {"weight": (0.25, 1.0), "bias": (0.125, 0.0), "running_mean": (0.125, 0.0), "running_var": (0.125, 0.0)}


def scale_and_offset(name, shape, is_norm):
    """Keeps activations as large as the input; the same in vision.rs."""
    if is_norm:
        return NORM[name.rsplit(".", 1)[1]]
    if len(shape) == 1:
        return (0.25, 1.0) if name.endswith("weight") else (0.125, 0.0)
    if len(shape) == 3:
        return 0.5, 0.0
    return fan_in_scale(int(np.prod(shape[1:]))), 0.0


def named(model):
    """The tensors by their names in a file: transformers renames them as it saves."""
    if not isinstance(model, ViTForImageClassification):
        return model.state_dict().items()
    with tempfile.TemporaryDirectory() as folder:
        for i, value in enumerate(model.state_dict().values()):
            value.fill_(i)
        model.save_pretrained(folder)
        saved = load_file(f"{folder}/model.safetensors")
    own = list(model.state_dict().values())
    return [(name, own[int(value.flatten()[0])]) for name, value in saved.items()]


def record(size, make, variance):
    model = make().double().eval()
    state = {name: value for name, value in named(model) if value.dtype.is_floating_point}
    norms = {name.rsplit(".", 1)[0] for name in state if name.endswith("running_var")}
    tensors = {}
    for name, value in state.items():
        at, shape = name.rsplit(".", 1)[0], list(value.shape)
        scale, offset = scale_and_offset(name, shape, at in norms)
        offset += variance if name.endswith("running_var") else 0.0
        value.copy_(torch.from_numpy(tensor(name, shape, scale, offset)))
        # A batch normalisation is recorded as its width.
        tensors[at if at in norms else name] = shape[0] if at in norms else shape
    x = torch.from_numpy(tensor("input", (IMAGES, 3, size, size)))
    with torch.no_grad():
        logits = model(x)
    logits = getattr(logits, "logits", logits).tolist()
    return {"size": size, "variance": variance, "logits": [[float(f"{v:.9g}") for v in row] for row in logits], "tensors": tensors}


if __name__ == "__main__":
    recorded = {name: record(*case) for name, case in CASES.items()}
    print(json.dumps(recorded, separators=(",", ":")))
