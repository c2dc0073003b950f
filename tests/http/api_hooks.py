"""Hooks of schemathesis: most requests name a real app, and some inferences are whole.

Without them nearly all answers would be 400 and 404.
"""

import random

import schemathesis

CHOICES = random.Random(1)


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    # An app that is unloaded answers 503, as it should.
    is_unload = context.operation.path.endswith("/unload")
    if path_parameters and not is_unload and CHOICES.random() < 0.8:
        if "app" in path_parameters:
            path_parameters["app"] = "heart"
        if "variant" in path_parameters:
            path_parameters["variant"] = CHOICES.choice(["cnn-small", "resnet"])
    return path_parameters


@schemathesis.hook
def map_body(context, body):
    """An inference keeps its parameters, id and outputs, and gets inputs that fit."""
    is_inference = context.operation.path.endswith("/infer")
    if not is_inference or not isinstance(body, dict) or CHOICES.random() < 0.4:
        return body
    beat = {
        "name": "beat",
        "shape": [1, 187],
        "datatype": "FP32",
        "data": [0.25] * 187,
    }
    return {**body, "inputs": [beat]}
