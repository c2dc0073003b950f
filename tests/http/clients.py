#!/usr/bin/env python3
"""Drives a running server with the unmodified PyPI clients tritonclient (HTTP) and kserve (both).

    python clients.py HTTP_HOST:PORT GRPC_HOST:PORT APP

Shapes and names come from the app's metadata, so any app whose inputs are FP32
will do. Prints one line per check and exits 1 at the first that fails.
"""

import asyncio
import sys

import numpy as np
import tritonclient.http as triton
from checks import check_variants, describe, rows_of
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig
from kserve.inference_client import InferenceGRPCClient
from tritonclient.utils import InferenceServerException

def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    address, grpc, app = sys.argv[1:]
    address = address.removeprefix("http://").rstrip("/")
    # Generous: a first inference may have to load a model.
    with triton.InferenceServerClient(address, network_timeout=60.0) as client:
        metadata = client.get_model_metadata(app)
        for check in TRITON_CHECKS:
            check(client, metadata)
            print(f"tritonclient: {describe(check)}", flush=True)
    asyncio.run(drive_kserve(f"http://{address}", metadata))
    asyncio.run(drive_kserve_grpc(grpc, metadata))


def triton_inputs(arrays, binary):
    inputs = []
    for name, array in arrays.items():
        tensor = triton.InferInput(name, list(array.shape), "FP32")
        tensor.set_data_from_numpy(array, binary_data=binary)
        inputs.append(tensor)
    return inputs


def check_outputs(metadata, result, rows, names=None):
    """Every output is there, with the shape and type the metadata promises."""
    wanted = [t for t in metadata["outputs"] if names is None or t["name"] in names]
    assert len(result.get_response()["outputs"]) == len(wanted)
    for tensor in wanted:
        array = result.as_numpy(tensor["name"])
        assert array is not None, f"no {tensor['name']}"
        assert array.shape[0] == rows, array.shape
        assert len(array.shape) == len(tensor["shape"]), array.shape
        for dim, promised in zip(array.shape, tensor["shape"]):
            assert promised in (-1, dim), f"{array.shape} is not {tensor['shape']}"
        assert result.get_output(tensor["name"])["datatype"] == tensor["datatype"]


def check_decision(metadata, result):
    """The answer says which variant gave it, and why it took its time."""
    response = result.get_response()
    assert response["model_name"] == metadata["name"]
    check_variants(metadata, response["model_version"])
    parameters = response["parameters"]
    assert parameters["variant"] == response["model_version"]
    for name, kind in {
        "exit": str,
        "policy": str,
        "batch_size": int,
        "queue_us": int,
        "compute_us": int,
        "deadline_met": bool,
        "short_circuit": bool,
    }.items():
        assert type(parameters[name]) is kind, f"{name} is {parameters[name]!r}"


def refused(status, field, call):
    """The call must fail with that status and a message naming that field."""
    try:
        call()
    except InferenceServerException as error:
        assert error.status() == str(status), f"{error.status()}: {error.message()}"
        assert field in error.message(), error.message()
        return
    raise AssertionError(f"was answered, not refused with {status}")


# --- tritonclient ---------------------------------------------------------


def the_server_is_live_and_ready(client, metadata):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(metadata["name"])
    for variant in metadata["versions"]:
        assert client.is_model_ready(metadata["name"], variant)
    assert not client.is_model_ready("no-such-app")


def the_server_announces_what_it_can(client, _):
    server = client.get_server_metadata()
    assert server["name"] == "switchyard" and server["version"]
    assert "binary_tensor_data" in server["extensions"]
    assert "schedule_policy" in server["extensions"]


def metadata_and_configuration_agree(client, metadata):
    config = client.get_model_config(metadata["name"])
    assert config["name"] == metadata["name"]
    assert config["max_batch_size"] >= 1
    for side, tensors in (("input", "inputs"), ("output", "outputs")):
        for entry, tensor in zip(config[side], metadata[tensors], strict=True):
            assert entry["name"] == tensor["name"]
            assert [-1, *entry["dims"]] == tensor["shape"]
    for variant in metadata["versions"]:
        pinned = client.get_model_metadata(metadata["name"], variant)
        assert pinned["versions"] == [variant]


def the_repository_index_lists_every_variant(client, metadata):
    index = client.get_model_repository_index()
    listed = {e["version"] for e in index if e["name"] == metadata["name"]}
    assert listed == set(metadata["versions"])


def statistics_count_an_inference(client, metadata):
    def rows():
        stats = client.get_inference_statistics(metadata["name"])["model_stats"]
        assert {s["version"] for s in stats} == set(metadata["versions"])
        return sum(s["inference_count"] for s in stats)

    before, variant = rows(), metadata["versions"][0]
    inputs = triton_inputs(rows_of(metadata, 2), True)
    client.infer(metadata["name"], inputs, model_version=variant)
    # Others may use the server too, so at least these two.
    assert rows() >= before + 2, f"{rows()} rows after 2 more than {before}"
    everything = client.get_inference_statistics()["model_stats"]
    assert metadata["name"] in {s["name"] for s in everything}


def json_in_json_out(client, metadata):
    outputs = [
        triton.InferRequestedOutput(t["name"], binary_data=False)
        for t in metadata["outputs"]
    ]
    inputs = triton_inputs(rows_of(metadata, 1), False)
    result = client.infer(metadata["name"], inputs, outputs=outputs, request_id="r-1")
    check_outputs(metadata, result, 1)
    check_decision(metadata, result)
    assert result.get_response()["id"] == "r-1"


def binary_in_binary_out(client, metadata):
    result = client.infer(metadata["name"], triton_inputs(rows_of(metadata, 2), True))
    check_outputs(metadata, result, 2)
    check_decision(metadata, result)
    for output in result.get_response()["outputs"]:
        assert "binary_data_size" in output["parameters"]
    assert "id" not in result.get_response()


def binary_and_json_give_the_same(client, metadata):
    variant, arrays = metadata["versions"][0], rows_of(metadata, 1)
    binary, plain = (
        client.infer(metadata["name"], triton_inputs(arrays, form), model_version=variant)
        for form in (True, False)
    )
    for answer in (binary, plain):
        assert answer.get_response()["model_version"] == variant
    name = metadata["outputs"][0]["name"]
    if not any(r.get_response()["parameters"]["short_circuit"] for r in (binary, plain)):
        np.testing.assert_allclose(
            binary.as_numpy(name), plain.as_numpy(name), rtol=1e-4, atol=1e-5
        )


def only_the_outputs_asked_for_come(client, metadata):
    name = metadata["outputs"][-1]["name"]
    result = client.infer(
        metadata["name"],
        triton_inputs(rows_of(metadata, 1), True),
        outputs=[triton.InferRequestedOutput(name)],
    )
    check_outputs(metadata, result, 1, names=[name])


def every_variant_can_be_pinned(client, metadata):
    for variant in metadata["versions"]:
        inputs = triton_inputs(rows_of(metadata, 1), True)
        result = client.infer(metadata["name"], inputs, model_version=variant)
        assert result.get_response()["model_version"] == variant


def compression_works_both_ways(client, metadata):
    for request, response in (
        ("gzip", None),
        ("deflate", None),
        (None, "gzip"),
        (None, "deflate"),
        ("gzip", "deflate"),
        ("deflate", "gzip"),
    ):
        for binary in (True, False):
            result = client.infer(
                metadata["name"],
                triton_inputs(rows_of(metadata, 2), binary),
                request_compression_algorithm=request,
                response_compression_algorithm=response,
            )
            check_outputs(metadata, result, 2)


def scheduling_parameters_are_taken(client, metadata):
    # A minute: whatever the machine, it is met.
    result = client.infer(
        metadata["name"],
        triton_inputs(rows_of(metadata, 1), True),
        priority=1,
        timeout=60_000_000,
        parameters={"min_accuracy": 0.0},
    )
    check_outputs(metadata, result, 1)
    assert result.get_response()["parameters"]["deadline_met"] is True


def many_at_once_are_all_answered(client, metadata):
    with triton.InferenceServerClient(
        client._parsed_url.netloc, concurrency=8, network_timeout=60.0
    ) as wide:
        pending = [
            wide.async_infer(metadata["name"], triton_inputs(rows_of(metadata, 1), True))
            for _ in range(32)
        ]
        for one in pending:
            check_outputs(metadata, one.get_result(), 1)


def wrong_requests_are_refused_by_field(client, metadata):
    app, good = metadata["name"], rows_of(metadata, 1)
    name = next(iter(good))

    def infer(change=None, to=app, **arguments):
        arrays = dict(good)
        if change is not None:
            arrays[name] = change
        return lambda: client.infer(to, triton_inputs(arrays, True), **arguments)

    refused(404, "no-such-app", infer(to="no-such-app"))
    refused(404, "no-such-variant", infer(model_version="no-such-variant"))
    refused(400, "inputs[0].shape", infer(good[name][..., np.newaxis]))
    refused(400, "inputs[0].shape", infer(good[name][:0]))
    refused(400, "outputs[0].name", infer(outputs=[triton.InferRequestedOutput("none")]))
    refused(400, "parameters.timeout", infer(timeout="soon"))

    wrong_type = triton.InferInput(name, list(good[name].shape), "INT64")
    wrong_type.set_data_from_numpy(good[name].astype(np.int64))
    refused(400, "inputs[0].datatype", lambda: client.infer(app, [wrong_type]))

    wrong_name = triton.InferInput("no-such-input", list(good[name].shape), "FP32")
    wrong_name.set_data_from_numpy(good[name])
    refused(400, "inputs[0].name", lambda: client.infer(app, [wrong_name]))

    truncated = triton.InferInput(name, list(good[name].shape), "FP32")
    truncated.set_data_from_numpy(good[name])
    truncated._raw_data = truncated._raw_data[:-3]
    truncated._parameters["binary_data_size"] -= 3
    refused(400, "inputs[0]", lambda: client.infer(app, [truncated]))

    refused(404, "no-such-app", lambda: client.load_model("no-such-app"))
    refused(404, "no-such-app", lambda: client.unload_model("no-such-app"))
    refused(400, "parameters.config", lambda: client.load_model(app, config="{}"))
    weights = {"file:1/model.bin": b"weights"}
    refused(400, "parameters.", lambda: client.load_model(app, config="{}", files=weights))


def an_app_is_unloaded_and_loaded_again(client, metadata):
    app = metadata["name"]

    def states():
        index = client.get_model_repository_index()
        return {entry["state"] for entry in index if entry["name"] == app}

    def infer():
        return client.infer(app, triton_inputs(rows_of(metadata, 1), True))

    assert states() == {"READY"}
    client.unload_model(app, unload_dependents=True)
    assert not client.is_model_ready(app)
    assert states() <= {"UNLOADING", "UNAVAILABLE"}, states()
    refused(503, "unloaded", infer)
    assert client.is_server_live()
    client.load_model(app)
    assert client.is_model_ready(app)
    assert states() == {"READY"}
    check_outputs(metadata, infer(), 1)
    client.load_model(app)
    assert client.is_model_ready(app), "loading a loaded model changes nothing"


def a_body_of_100_megabytes_is_refused(client, metadata):
    rows = 100_000_000 // rows_of(metadata, 1)[metadata["inputs"][0]["name"]].nbytes + 1
    inputs = triton_inputs(rows_of(metadata, rows), True)
    refused(413, "Content-Length", lambda: client.infer(metadata["name"], inputs))
    assert client.is_server_live()


TRITON_CHECKS = [
    the_server_is_live_and_ready,
    the_server_announces_what_it_can,
    metadata_and_configuration_agree,
    the_repository_index_lists_every_variant,
    statistics_count_an_inference,
    json_in_json_out,
    binary_in_binary_out,
    binary_and_json_give_the_same,
    only_the_outputs_asked_for_come,
    every_variant_can_be_pinned,
    compression_works_both_ways,
    scheduling_parameters_are_taken,
    many_at_once_are_all_answered,
    wrong_requests_are_refused_by_field,
    an_app_is_unloaded_and_loaded_again,
    a_body_of_100_megabytes_is_refused,
]


# --- kserve ---------------------------------------------------------------


async def drive_kserve(url, metadata):
    client = InferenceRESTClient(RESTConfig(protocol="v2", timeout=60.0))
    try:
        for check in KSERVE_CHECKS:
            await check(client, url, metadata)
            print(f"kserve: {describe(check)}", flush=True)
    finally:
        await client.close()


def kserve_request(metadata, rows, binary):
    inputs = []
    for name, array in rows_of(metadata, rows).items():
        tensor = InferInput(name, list(array.shape), "FP32")
        tensor.set_data_from_numpy(array, binary_data=binary)
        inputs.append(tensor)
    return InferRequest(model_name=metadata["name"], infer_inputs=inputs)


def check_kserve_answer(metadata, answer, rows):
    assert answer.model_name == metadata["name"]
    # InferResponse.from_bytes (kserve 0.21) builds a response without model_version.
    check_variants(metadata, answer.parameters["variant"])
    assert [o.name for o in answer.outputs] == [t["name"] for t in metadata["outputs"]]
    for output in answer.outputs:
        assert output.as_numpy().shape[0] == rows


async def health_is_understood(client, url, metadata):
    assert await client.is_server_live(url) is True
    assert await client.is_server_ready(url) is True
    assert await client.is_model_ready(url, metadata["name"]) is True
    assert await client.is_model_ready(url, "no-such-app") is False


async def json_is_answered(client, url, metadata):
    request = kserve_request(metadata, 2, binary=False)
    answer = await client.infer(url, request, model_name=metadata["name"])
    check_kserve_answer(metadata, answer, 2)


async def binary_is_answered(client, url, metadata):
    request = kserve_request(metadata, 2, binary=True)
    answer = await client.infer(url, request, model_name=metadata["name"])
    check_kserve_answer(metadata, answer, 2)


async def binary_outputs_are_understood(client, url, metadata):
    request = kserve_request(metadata, 1, binary=True)
    request.parameters = {"binary_data_output": True}
    answer = await client.infer(url, request, model_name=metadata["name"])
    check_kserve_answer(metadata, answer, 1)


async def errors_carry_their_text(client, url, metadata):
    import httpx

    array = next(iter(rows_of(metadata, 1).values()))
    tensor = InferInput("no-such-input", list(array.shape), "FP32")
    tensor.set_data_from_numpy(array, binary_data=False)
    request = InferRequest(model_name=metadata["name"], infer_inputs=[tensor])
    try:
        await client.infer(url, request, model_name=metadata["name"])
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == 400
        assert "inputs[0].name" in str(error), str(error)
    else:
        raise AssertionError("an unknown input was answered")


KSERVE_CHECKS = [
    health_is_understood,
    json_is_answered,
    binary_is_answered,
    binary_outputs_are_understood,
    errors_carry_their_text,
]


async def drive_kserve_grpc(address, metadata):
    async with InferenceGRPCClient(address) as client:
        assert await client.is_server_live() is True
        assert await client.is_server_ready() is True
        assert await client.is_model_ready(metadata["name"]) is True
        print("kserve over gRPC: health is understood", flush=True)
        for form in (True, False):
            request = kserve_request(metadata, 2, binary=form)
            answer = await client.infer(request)
            assert answer.model_name == metadata["name"]
            assert [o.name for o in answer.outputs] == [t["name"] for t in metadata["outputs"]]
            for output in answer.outputs:
                assert output.as_numpy().shape[0] == 2
            print(f"kserve over gRPC: {'raw' if form else 'typed'} is answered", flush=True)


if __name__ == "__main__":
    main()
