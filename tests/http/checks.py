"""Parts of the checks of all clients."""

import numpy as np

# The variant's name in an answer from evidence alone.
SHORT_CIRCUIT = "sneakpeek"


def describe(check):
    return check.__name__.replace("_", " ")


def rows_of(metadata, rows):
    """Rows of plausible numbers for every input; a variable dimension is given 2."""
    numbers = np.random.default_rng(7)
    arrays = {}
    for tensor in metadata["inputs"]:
        assert tensor["datatype"] == "FP32", f"{tensor['name']} is {tensor['datatype']}"
        assert tensor["shape"][0] == -1, f"{tensor['name']} has no batch dimension"
        shape = [rows] + [2 if dim < 0 else dim for dim in tensor["shape"][1:]]
        arrays[tensor["name"]] = numbers.normal(size=shape).astype(np.float32)
    return arrays


def check_variants(metadata, named):
    """A scheduler may run the rows of one request on different variants, and answer a row
    from its evidence alone; all that answered are named, separated by commas."""
    for variant in named.split(","):
        assert variant in [*metadata["versions"], SHORT_CIRCUIT], named
