#!/usr/bin/env python3
"""Drives a running server over gRPC with the unmodified PyPI client tritonclient. Its messages and
those of kserve cannot be loaded into one process, so that kserve is in clients.py.

    python grpc_clients.py HTTP_HOST:PORT GRPC_HOST:PORT APP

The checks are those of clients.py; answers are compared with those of HTTP. Prints one line per
check and exits 1 at the first that fails.
"""

import queue
import sys

import numpy as np
import tritonclient.grpc as triton
import tritonclient.http as over_http
from checks import SHORT_CIRCUIT, check_variants, describe, rows_of
from tritonclient.utils import InferenceServerException


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    http, grpc, app = sys.argv[1:]
    with (
        over_http.InferenceServerClient(http, network_timeout=60.0) as other,
        triton.InferenceServerClient(grpc) as client,
    ):
        metadata = client.get_model_metadata(app, as_json=True)
        # JSON of protobuf has int64 as text.
        for tensor in metadata["inputs"] + metadata["outputs"]:
            tensor["shape"] = [int(dim) for dim in tensor.get("shape", [])]
        assert metadata == other.get_model_metadata(app)
        for check in TRITON_CHECKS:
            check(client, other, metadata)
            print(f"tritonclient.grpc: {describe(check)}", flush=True)


def http_inputs_of(arrays):
    inputs = []
    for name, array in arrays.items():
        tensor = over_http.InferInput(name, list(array.shape), "FP32")
        tensor.set_data_from_numpy(array)
        inputs.append(tensor)
    return inputs


def inputs_of(arrays):
    inputs = []
    for name, array in arrays.items():
        tensor = triton.InferInput(name, list(array.shape), "FP32")
        tensor.set_data_from_numpy(array)
        inputs.append(tensor)
    return inputs


def check_outputs(metadata, result, rows, names=None):
    """Every output is there, raw, with the shape and type the metadata promises."""
    wanted = [t for t in metadata["outputs"] if names is None or t["name"] in names]
    response = result.get_response()
    assert len(response.outputs) == len(response.raw_output_contents) == len(wanted)
    for tensor in wanted:
        array = result.as_numpy(tensor["name"])
        assert array.shape[0] == rows and len(array.shape) == len(tensor["shape"]), array.shape
        assert result.get_output(tensor["name"]).datatype == tensor["datatype"]


def check_decision(metadata, result):
    response = result.get_response()
    assert response.model_name == metadata["name"]
    check_variants(metadata, response.model_version)
    parameters = response.parameters
    assert parameters["variant"].string_param == response.model_version
    for name, kind in {
        "exit": "string_param",
        "policy": "string_param",
        "batch_size": "int64_param",
        "queue_us": "int64_param",
        "compute_us": "int64_param",
        "deadline_met": "bool_param",
        "short_circuit": "bool_param",
    }.items():
        assert parameters[name].WhichOneof("parameter_choice") == kind, name


def refused(status, field, call):
    """The call must fail with that status and a message naming that field."""
    try:
        call()
    except InferenceServerException as error:
        assert error.status() == f"StatusCode.{status}", f"{error.status()}: {error.message()}"
        assert field in error.message(), error.message()
        return
    raise AssertionError(f"was answered, not refused with {status}")


# --- tritonclient ---------------------------------------------------------


def the_server_is_live_and_ready(client, _, metadata):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(metadata["name"])
    for variant in [*metadata["versions"], "1", "latest"]:
        assert client.is_model_ready(metadata["name"], variant)
    assert not client.is_model_ready("no-such-app")


def the_server_is_the_one_of_http(client, other, metadata):
    assert client.get_server_metadata(as_json=True) == other.get_server_metadata()
    app = metadata["name"]
    config = client.get_model_config(app, as_json=True)["config"]
    same = other.get_model_config(app)
    for field in ("name", "platform", "backend", "max_batch_size"):
        assert config[field] == same[field], field
    for side in ("input", "output"):
        for own, theirs in zip(config[side], same[side], strict=True):
            assert own["data_type"] == theirs["data_type"] and own["name"] == theirs["name"]
            assert [int(dim) for dim in own.get("dims", [])] == theirs["dims"]


def the_repository_index_is_the_one_of_http(client, other, _):
    listed = client.get_model_repository_index(as_json=True)["models"]
    theirs = other.get_model_repository_index()
    for entry in theirs:
        entry.pop("reason") if not entry["reason"] else None
    assert listed == theirs


def statistics_count_an_inference(client, other, metadata):
    app, variant = metadata["name"], metadata["versions"][0]

    def counts(version):
        [stats] = client.get_inference_statistics(app, version).model_stats
        assert stats.version == version
        durations = stats.inference_stats
        requests = durations.success.count
        for part in ("queue", "compute_input", "compute_infer", "compute_output"):
            assert getattr(durations, part).count == requests, part
        return requests, stats.inference_count

    before, all_before = counts(variant), counts("1")
    client.infer(app, inputs_of(rows_of(metadata, 3)), model_version=variant)
    after, all_after = counts(variant), counts("1")
    # Others may use the server too, so at least these: one request of three rows.
    assert after[0] >= before[0] + 1 and after[1] >= before[1] + 3, (before, after)
    assert all_after[0] >= all_before[0] + 1
    if after[0] == before[0] + 1:
        assert after[1] == before[1] + 3, (before, after)
    everything = client.get_inference_statistics().model_stats
    listed = {(s.name, s.version) for s in everything}
    over = {(s["name"], s["version"]) for s in other.get_inference_statistics()["model_stats"]}
    assert listed == over


def answers_are_those_of_http(client, other, metadata):
    app, variant = metadata["name"], metadata["versions"][0]
    for rows in (1, 2, 5):
        arrays = rows_of(metadata, rows)
        result = client.infer(app, inputs_of(arrays), model_version=variant, request_id="r-1")
        check_outputs(metadata, result, rows)
        check_decision(metadata, result)
        assert result.get_response().id == "r-1"
        same = other.infer(app, http_inputs_of(arrays), model_version=variant)
        if SHORT_CIRCUIT in same.get_response()["model_version"]:
            continue
        for tensor in metadata["outputs"]:
            own, theirs = result.as_numpy(tensor["name"]), same.as_numpy(tensor["name"])
            if tensor["datatype"] == "FP32":
                np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-5)
            else:
                assert own.shape == theirs.shape


def typed_elements_get_the_same_answer(client, _, metadata):
    app, variant, arrays = metadata["name"], metadata["versions"][0], rows_of(metadata, 2)
    raw = client.infer(app, inputs_of(arrays), model_version=variant)
    inputs = inputs_of(arrays)
    for tensor, array in zip(inputs, arrays.values(), strict=True):
        tensor._raw_content = None
        tensor._input.contents.fp32_contents.extend(array.flatten().tolist())
    typed = client.infer(app, inputs, model_version=variant)
    name = metadata["outputs"][0]["name"]
    if not any(r.get_response().parameters["short_circuit"].bool_param for r in (raw, typed)):
        np.testing.assert_allclose(
            raw.as_numpy(name), typed.as_numpy(name), rtol=1e-4, atol=1e-5
        )


def only_the_outputs_asked_for_come(client, _, metadata):
    name = metadata["outputs"][-1]["name"]
    inputs = inputs_of(rows_of(metadata, 1))
    outputs = [triton.InferRequestedOutput(name)]
    result = client.infer(metadata["name"], inputs, outputs=outputs)
    check_outputs(metadata, result, 1, names=[name])


def every_variant_can_be_pinned(client, _, metadata):
    for variant in metadata["versions"]:
        inputs = inputs_of(rows_of(metadata, 1))
        result = client.infer(metadata["name"], inputs, model_version=variant)
        assert result.get_response().model_version == variant


def compressed_requests_are_answered(client, _, metadata):
    for coding in ("gzip", "deflate"):
        inputs = inputs_of(rows_of(metadata, 2))
        result = client.infer(metadata["name"], inputs, compression_algorithm=coding)
        check_outputs(metadata, result, 2)


def scheduling_parameters_are_taken(client, _, metadata):
    # A minute: whatever the machine, it is met.
    result = client.infer(
        metadata["name"],
        inputs_of(rows_of(metadata, 1)),
        priority=1,
        timeout=60_000_000,
        client_timeout=60.0,
        parameters={"min_accuracy": "0.0"},
    )
    check_outputs(metadata, result, 1)
    assert result.get_response().parameters["deadline_met"].bool_param is True


def many_at_once_are_all_answered(client, _, metadata):
    answers = queue.Queue()
    for _ in range(32):
        client.async_infer(
            metadata["name"],
            inputs_of(rows_of(metadata, 1)),
            lambda result, error: answers.put((result, error)),
        )
    for _ in range(32):
        result, error = answers.get(timeout=60)
        assert error is None, error
        check_outputs(metadata, result, 1)


def a_stream_answers_in_order(client, _, metadata):
    answers = queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    for n in range(10):
        client.async_stream_infer(
            metadata["name"], inputs_of(rows_of(metadata, 1)), request_id=f"r-{n}"
        )
    client.async_stream_infer("no-such-app", inputs_of(rows_of(metadata, 1)))
    client.async_stream_infer(
        metadata["name"], inputs_of(rows_of(metadata, 1)), enable_empty_final_response=True
    )
    for n in range(10):
        result, error = answers.get(timeout=60)
        assert error is None, error
        assert result.get_response().id == f"r-{n}"
        check_outputs(metadata, result, 1)
    result, error = answers.get(timeout=60)
    assert result is None and "no-such-app" in error.message(), error
    result, error = answers.get(timeout=60)
    assert error is None
    assert result.get_response().parameters["triton_final_response"].bool_param is True
    client.stop_stream()


def wrong_requests_are_refused_by_field(client, _, metadata):
    app, good = metadata["name"], rows_of(metadata, 1)
    name = next(iter(good))

    def infer(change=None, to=app, **arguments):
        arrays = dict(good)
        if change is not None:
            arrays[name] = change
        return lambda: client.infer(to, inputs_of(arrays), **arguments)

    refused("NOT_FOUND", "no-such-app", infer(to="no-such-app"))
    refused("NOT_FOUND", "no-such-variant", infer(model_version="no-such-variant"))
    refused("INVALID_ARGUMENT", "inputs[0].shape", infer(good[name][..., np.newaxis]))
    refused("INVALID_ARGUMENT", "inputs[0].shape", infer(good[name][:0]))
    unknown = [triton.InferRequestedOutput("none")]
    refused("INVALID_ARGUMENT", "outputs[0].name", infer(outputs=unknown))
    late = {"min_accuracy": "2.0"}
    refused("INVALID_ARGUMENT", "parameters.min_accuracy", infer(parameters=late))

    wrong_type = triton.InferInput(name, list(good[name].shape), "INT64")
    wrong_type.set_data_from_numpy(good[name].astype(np.int64))
    refused("INVALID_ARGUMENT", "inputs[0].datatype", lambda: client.infer(app, [wrong_type]))

    wrong_name = triton.InferInput("no-such-input", list(good[name].shape), "FP32")
    wrong_name.set_data_from_numpy(good[name])
    refused("INVALID_ARGUMENT", "inputs[0].name", lambda: client.infer(app, [wrong_name]))

    truncated = triton.InferInput(name, list(good[name].shape), "FP32")
    truncated.set_data_from_numpy(good[name])
    truncated._raw_content = truncated._raw_content[:-3]
    refused("INVALID_ARGUMENT", "raw_input_contents[0]", lambda: client.infer(app, [truncated]))

    refused("NOT_FOUND", "no-such-app", lambda: client.load_model("no-such-app"))
    refused("NOT_FOUND", "no-such-app", lambda: client.unload_model("no-such-app"))
    refused("INVALID_ARGUMENT", "parameters.config", lambda: client.load_model(app, config="{}"))
    refused("UNIMPLEMENTED", "SystemSharedMemory", client.get_system_shared_memory_status)
    refused("UNIMPLEMENTED", "TraceSetting", client.get_trace_settings)


def an_app_is_unloaded_and_loaded_again(client, _, metadata):
    app = metadata["name"]

    def states():
        models = client.get_model_repository_index().models
        return {entry.state for entry in models if entry.name == app}

    def infer():
        return client.infer(app, inputs_of(rows_of(metadata, 1)))

    assert states() == {"READY"}
    client.unload_model(app, unload_dependents=True)
    assert not client.is_model_ready(app)
    assert states() <= {"UNLOADING", "UNAVAILABLE"}, states()
    refused("UNAVAILABLE", "unloaded", infer)
    client.load_model(app)
    assert client.is_model_ready(app)
    check_outputs(metadata, infer(), 1)


def a_message_of_100_megabytes_is_refused(client, _, metadata):
    rows = 100_000_000 // rows_of(metadata, 1)[metadata["inputs"][0]["name"]].nbytes + 1
    inputs = inputs_of(rows_of(metadata, rows))
    refused("RESOURCE_EXHAUSTED", "the limit is", lambda: client.infer(metadata["name"], inputs))
    assert client.is_server_live()


TRITON_CHECKS = [
    the_server_is_live_and_ready,
    the_server_is_the_one_of_http,
    the_repository_index_is_the_one_of_http,
    statistics_count_an_inference,
    answers_are_those_of_http,
    typed_elements_get_the_same_answer,
    only_the_outputs_asked_for_come,
    every_variant_can_be_pinned,
    compressed_requests_are_answered,
    scheduling_parameters_are_taken,
    many_at_once_are_all_answered,
    a_stream_answers_in_order,
    wrong_requests_are_refused_by_field,
    an_app_is_unloaded_and_loaded_again,
    a_message_of_100_megabytes_is_refused,
]


if __name__ == "__main__":
    main()
