"""gRPC on a real server, asked by Triton's own client, unchanged, and by hand."""

import json
import queue
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from parity.errors import RowError
from parity_online.keys import new_key
from parity_online.problems import rows_problem
from parity_online.process import ServerProcess
from tests.online.serving import LINEAR, PROBE, ask, metric
from tests.online.test_repository import write_version

pytestmark = pytest.mark.slow

grpc = pytest.importorskip("grpc")
triton = pytest.importorskip("tritonclient.grpc")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    ran = tmp_path_factory.mktemp("grpc") / "ran"
    arguments = [PROBE, LINEAR, "--max-batch", "8", "--queue-rows", "16", "--body-limit-mb", "1"]
    arguments += ["--grpc-port", "0"]
    with ServerProcess(arguments, environment={"PROBE_RAN": str(ran)}) as found:
        yield found


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Any]:
    with triton.InferenceServerClient(server.grpc) as found:
        yield found


def tensor(name: str, kind: str, values: np.ndarray) -> Any:
    found = triton.InferInput(name, list(values.shape), kind)
    found.set_data_from_numpy(values)
    return found


def ids(*numbers: int) -> Any:
    return tensor("id", "INT64", np.array(numbers))


def acts(*words: str) -> Any:
    return tensor("act", "BYTES", np.array(words, object))


def test_it_sees_a_server_and_its_models(client: Any):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("probe", "3")
    assert "binary_tensor_data" in client.get_server_metadata().extensions
    assert list(client.get_model_metadata("linear").inputs[0].shape) == [-1, 8]
    config = client.get_model_config("linear").config
    assert (config.max_batch_size, config.input[0].data_type, list(config.input[0].dims)) == (8, 11, [8])
    assert config.dynamic_batching.default_queue_policy.max_queue_size == 16
    assert [entry.state for entry in client.get_model_repository_index().models] == ["READY", "READY"]
    assert [entry.name for entry in client.get_inference_statistics().model_stats] == ["probe", "linear"]


def test_tensors_in_tensors_out(client: Any):
    x = np.array([0.1, np.nan, -0.0], np.float32)
    outputs = [triton.InferRequestedOutput("y"), triton.InferRequestedOutput("id")]
    result = client.infer(
        "probe", [ids(1, 2**62, 3), tensor("x", "FP32", x)], outputs=outputs, request_id="r7"
    )
    assert result.as_numpy("id").tolist() == [1, 2**62, 3]
    assert result.as_numpy("y").tobytes() == (x * np.float32(2) + np.float32(1)).tobytes()
    assert result.as_numpy("rows") is None
    assert (result.get_response().id, result.get_response().model_version) == ("r7", "3")


def test_more_rows_than_a_batch_are_put_together_again(client: Any):
    result = client.infer("probe", [ids(*range(13))])
    assert result.as_numpy("id").tolist() == list(range(13))


def test_a_compressed_message_is_refused_before_it_is_unpacked(server: ServerProcess, client: Any):
    bomb = bytes(50_000_000)
    for algorithm in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        for metadata in ((), (("authorization", "Bearer nobody"),)):
            error = refusal(server, bomb, compression=algorithm, metadata=metadata)
            assert error.code() is grpc.StatusCode.UNIMPLEMENTED
    with pytest.raises(triton.InferenceServerException, match="UNIMPLEMENTED"):
        client.infer("probe", [ids(1)], compression_algorithm="gzip")
    assert client.infer("probe", [ids(1)]).as_numpy("id").tolist() == [1]


def test_typed_contents_are_read(server: ServerProcess):
    from parity.codec.oip_messages import message_type

    request = message_type("ModelInferRequest")(model_name="probe")
    for name, kind in (("id", "INT64"), ("x", "FP32"), ("act", "BYTES")):
        request.inputs.add(name=name, datatype=kind, shape=[2])
    request.inputs[0].contents.int64_contents.extend([4, 5])
    request.inputs[1].contents.fp32_contents.extend([0.5, 1.5])
    request.inputs[2].contents.bytes_contents.extend([b"", b""])
    answer = message_type("ModelInferResponse").FromString(call(server, request.SerializeToString()))
    assert [output.name for output in answer.outputs] == ["id", "y", "rows"]
    assert np.frombuffer(answer.raw_output_contents[1], "<f4").tolist() == [2.0, 4.0]


ONE = [("id", "INT64", [1], b"\0" * 8)]


def call(server: ServerProcess, body: bytes, method: str = "ModelInfer", **options: Any) -> bytes:
    with grpc.insecure_channel(server.grpc) as channel:
        return channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(body, **options)


def refusal(server: ServerProcess, body: bytes, method: str = "ModelInfer", **options: Any) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        call(server, body, method, **options)
    return caught.value


def stream(server: ServerProcess, bodies: list[bytes], **options: Any) -> list[Any]:
    """The answers of a stream."""
    from parity.codec.oip_messages import message_type

    read = message_type("ModelStreamInferResponse").FromString
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        return [read(answer) for answer in call(iter(bodies), **options)]


def message(**inputs: tuple[str, list[int], bytes]) -> bytes:
    """A request to the probe: the datatype, shape and bytes of each input."""
    from parity.codec.oip_messages import message_type

    request = message_type("ModelInferRequest")(model_name="probe", id="m1")
    for name, (kind, shape, data) in inputs.items():
        request.inputs.add(name=name, datatype=kind, shape=shape)
        request.raw_input_contents.append(data)
    return request.SerializeToString()


@pytest.mark.parametrize(
    ("inputs", "code", "said"),
    [
        ([("id", "INT32", [1], b"\0" * 4)], "INVALID_ARGUMENT", "data-type is 'INT32'"),
        ([("id", "INT64", [1], b"\0" * 4)], "INVALID_ARGUMENT", "expected 8 bytes"),
        ([("id", "INT64", [-1], b"")], "INVALID_ARGUMENT", "shape"),
        ([("idd", "INT64", [1], b"\0" * 8)], "INVALID_ARGUMENT", "'id'"),
        ([], "INVALID_ARGUMENT", "there is no input"),
        ([("id", "INT64", [17], b"\0" * 136)], "RESOURCE_EXHAUSTED", "17 rows"),
        (
            [("id", "INT64", [1], b"\0" * 8), ("act", "BYTES", [1], b"\3\0\0\0abc")],
            "INVALID_ARGUMENT",
            "'abc'",
        ),
        (
            [("id", "INT64", [2], b"\0" * 16), ("act", "BYTES", [2], b"\0\0\0\0\6\0\0\0reject")],
            "INVALID_ARGUMENT",
            "row 1",
        ),
        ([("id", "INT64", [1], b"\0" * 8), ("act", "BYTES", [1], b"\5\0\0\0raise")], "INTERNAL", "stage"),
    ],
)
def test_each_error_has_its_code(server: ServerProcess, inputs: list[Any], code: str, said: str):
    from parity.codec.oip_messages import message_type

    request = message_type("ModelInferRequest")(model_name="probe")
    for name, kind, shape, data in inputs:
        request.inputs.add(name=name, datatype=kind, shape=shape)
        request.raw_input_contents.append(data)
    error = refusal(server, request.SerializeToString(), metadata=(("x-request-id", "q1"),))
    assert error.code() is grpc.StatusCode[code]
    assert said in error.details()
    assert "secret-42" not in error.details()
    assert dict(error.trailing_metadata())["x-request-id"] == "q1"


def test_more_row_errors_than_metadata_holds_are_counted(server: ServerProcess):
    acts = b"".join(struct.pack("<I", 60) + b"%060d" % number for number in range(16))
    error = refusal(server, message(id=("INT64", [16], bytes(128)), act=("BYTES", [16], acts)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    metadata = dict(error.trailing_metadata())
    told = json.loads(metadata["parity-rows-bin"])
    assert [row["row"] for row in told] == list(range(len(told)))
    assert 0 < len(told) < 16
    assert metadata["x-row-errors"] == "16"


@pytest.mark.parametrize("text", ["x", "%", "\u00e9", "\n", "\N{GRINNING FACE}"])
@pytest.mark.parametrize("rows", [1, 10_000])
def test_a_long_error_is_cut_to_what_metadata_holds(text: str, rows: int):
    from parity_online.grpc_protocol import details, render

    long = text * 100_000
    errors = [RowError(row, "rejected", long, "id") for row in range(rows)]
    answer = render(rows_problem(errors, rows, show_failures=False), "r1")
    headers = dict(answer.headers)
    assert len(headers[b"parity-rows-bin"]) <= 3000
    assert json.loads(headers[b"parity-rows-bin"])[0]["row"] == 0
    assert headers[b"x-row-errors"] == b"%d" % rows
    said = details(answer.body.decode())
    assert len(quote(said, safe=" ")) < 2100
    assert said[-2] == text
    assert details("short \u00e9") == "short \u00e9"


def test_what_is_no_message_is_the_callers_fault(server: ServerProcess):
    for method in ("ModelInfer", "ModelReady", "ModelConfig", "RepositoryIndex"):
        assert refusal(server, b"\xff\xff", method).code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal(server, b"", "TraceSetting").code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_stream_names_the_request_that_its_headers_refuse(server: ServerProcess):
    body = message(id=("INT64", [1], b"\0" * 8))
    answers = stream(server, [body, b"\xff"], metadata=(("x-request-timeout", "soon"),))
    assert [answer.infer_response.id for answer in answers] == ["m1", ""]
    assert all("X-Request-Timeout" in answer.error_message for answer in answers)


def test_a_stream_of_large_requests_is_read_as_they_are_answered(server: ServerProcess):
    one = ("INT64", [1], b"\0" * 8)
    large = message(id=one, act=("BYTES", [1], struct.pack("<I", 600_000) + b"x" * 600_000))
    answers = stream(server, [large, message(id=one)] * 10)
    assert ["'act'" in answer.error_message for answer in answers] == [True, False] * 10


def test_more_requests_than_are_worked_on_at_once_are_answered(server: ServerProcess):
    bodies = [message(id=("INT64", [1], struct.pack("<q", number))) for number in range(200)]
    answers = stream(server, bodies)
    assert len(answers) == 200
    for number, answer in enumerate(answers):  # the queue holds 16 rows
        found = list(answer.infer_response.raw_output_contents[:1])
        assert found == [struct.pack("<q", number)] or "queue" in answer.error_message


def test_a_message_that_is_read_on_another_thread_has_its_error(server: ServerProcess):
    act = b"\0\0\3\0" + b"x" * (3 << 16)
    error = refusal(server, message(id=("INT64", [1], b"\0" * 8), act=("BYTES", [1], act)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "'act'" in error.details()


def test_unknown_models_and_versions_are_not_found(client: Any):
    for model, version in (("prob", ""), ("probe", "4")):
        with pytest.raises(triton.InferenceServerException, match="NOT_FOUND"):
            client.infer(model, [ids(1)], model_version=version)
        with pytest.raises(triton.InferenceServerException, match="NOT_FOUND"):
            client.get_model_metadata(model, version)
    with pytest.raises(triton.InferenceServerException, match="PERMISSION_DENIED"):
        client.unload_model("probe")


def test_a_stream_answers_in_order_and_survives_an_error(client: Any):
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    for number in range(12):
        act = "reject" if number == 5 else ""
        client.async_stream_infer("probe", [ids(number), acts(act)], request_id=str(number))
    found = [answers.get(timeout=60) for _ in range(12)]
    client.stop_stream()
    for number, (result, error) in enumerate(found):
        if number == 5:
            assert result is None
            assert "act says reject" in str(error)
        else:
            assert result.as_numpy("id").tolist() == [number]
            assert result.get_response().id == str(number)


def test_requests_are_counted_as_any_others(server: ServerProcess, client: Any):
    before = metric(server.url, "parity_answers_total", model="linear", protocol="grpc", status="200")
    names = np.array(["Adé", ""], object)
    features = np.arange(16, dtype=np.float32).reshape(2, 8)
    at = tensor("at", "BYTES", np.array(["2020-01-01T00:00:00Z"] * 2, object))
    inputs = [tensor("name", "BYTES", names), tensor("features", "FP32", features)]
    result = client.infer("linear", [*inputs, at, tensor("account", "INT64", np.array([1, 2]))])
    assert result.as_numpy("account").tolist() == [1, 2]
    row = {"features": features[0].tolist(), "name": "Adé", "account": 1, "at": "2020-01-01T00:00:00Z"}
    by_http = ask(server.url, "POST", "/predictions/linear", row, {"Content-Type": "application/json"})[2]
    assert result.as_numpy("greeting").tolist()[0].decode() == by_http["greeting"]
    assert result.as_numpy("score")[0] == np.float32(by_http["score"])
    after = metric(server.url, "parity_answers_total", model="linear", protocol="grpc", status="200")
    assert after == before + 1


def test_null_comes_only_where_it_is_asked_for(server: ServerProcess):
    from parity import load_handler
    from parity.codec import oip_grpc
    from parity.codec.rows import RowDecoder

    loaded = load_handler(LINEAR)
    rows = [{"features": [0.0] * 8, "account": account, "at": None} for account in (None, 7)]
    batch = RowDecoder(loaded.inputs).decode(rows).batch
    request = oip_grpc.encode_request(batch, "linear")
    answer = oip_grpc.read_message("ModelInferResponse", call(server, request.SerializeToString()))
    assert oip_grpc.decode_response(loaded.outputs, answer)["account"].to_pylist() == [None, 7]
    del request.parameters["null_rows"]
    error = refusal(server, request.SerializeToString())
    assert error.code() is grpc.StatusCode.INTERNAL


def test_versions_that_protobuf_and_metadata_cannot_tell_are_served(tmp_path: Path):
    for version in ("2", "9" * 25, str(2**63), "\u00e9"):
        write_version(tmp_path, "m", version)
    with (
        ServerProcess(["--models", str(tmp_path), "--grpc-port", "0"]) as server,
        triton.InferenceServerClient(server.grpc) as client,
    ):
        for version, told in (("2", [2]), ("9" * 25, []), (str(2**63), [])):
            config = client.get_model_config("m", version).config
            assert list(config.version_policy.specific.versions) == told
        x = [tensor("x", "FP32", np.zeros(1, np.float32))]
        assert client.infer("m", x, "9" * 25).as_numpy("by").tolist() == [b"9" * 25]
        assert client.infer("m", x, "\u00e9").as_numpy("by").tolist() == ["\u00e9".encode()]


def test_keys_are_asked_for_as_by_http(tmp_path: Path):
    key, line = new_key("ada")
    manager, other = new_key("bob", "manage")
    file = tmp_path / "keys"
    file.write_text(f"{line}\n{other}\n")
    arguments = [LINEAR, "--grpc-port", "0", "--api-keys", str(file), "--management"]
    with (
        ServerProcess(arguments) as server,
        triton.InferenceServerClient(server.grpc) as client,
    ):
        features = [tensor("features", "FP32", np.zeros((1, 8), np.float32))]
        assert client.is_server_ready()
        assert client.is_model_ready("linear")
        for ask_ in (lambda **more: client.infer("linear", features, **more), client.get_server_metadata):
            with pytest.raises(triton.InferenceServerException, match="UNAUTHENTICATED"):
                ask_()
            with pytest.raises(triton.InferenceServerException, match="UNAUTHENTICATED"):
                ask_(headers={"authorization": "Bearer nobody"})
        for body in (b"\xff\xff", b"\x0a\x04prob"):  # no message, and no model
            assert refusal(server, body).code() is grpc.StatusCode.UNAUTHENTICATED
            answer = stream(server, [body, body])[1]
            assert "API key" in answer.error_message
            assert refusal(server, body, metadata=(("x-api-key", key),)).code() in (
                grpc.StatusCode.INVALID_ARGUMENT,
                grpc.StatusCode.NOT_FOUND,
            )
        headers = {"authorization": f"Bearer {key}"}
        assert client.get_server_metadata(headers=headers).name == "parity"
        with pytest.raises(triton.InferenceServerException, match="'account'"):
            client.infer("linear", features, headers=headers)
        with pytest.raises(triton.InferenceServerException, match="PERMISSION_DENIED"):
            client.unload_model("linear", headers=headers)
        assert client.get_model_repository_index(headers={"x-api-key": manager}).models
