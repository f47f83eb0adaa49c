"""Triton's own client, unchanged, against a real server."""

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.online.serving import Probe

pytestmark = pytest.mark.slow

triton = pytest.importorskip("tritonclient.http")
aio = pytest.importorskip("tritonclient.http.aio")


@pytest.fixture
def client(probe: Probe) -> Iterator[Any]:
    with triton.InferenceServerClient(probe.server.url.removeprefix("http://")) as found:
        yield found


def tensor(name: str, kind: str, values: np.ndarray, *, binary: bool = True) -> Any:
    found = triton.InferInput(name, list(values.shape), kind)
    found.set_data_from_numpy(values, binary_data=binary)
    return found


def test_it_sees_a_server_and_its_models(client: Any):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("probe")
    assert client.is_model_ready("probe", "3")
    assert not client.is_model_ready("nobody")
    assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
    assert client.get_model_metadata("linear")["inputs"][0]["shape"] == [-1, 8]
    assert client.get_model_config("linear")["max_batch_size"] == 8
    assert client.get_model_repository_index()[0]["state"] == "READY"
    stats = client.get_inference_statistics("probe")["model_stats"]
    assert [entry["name"] for entry in stats] == ["probe"]
    assert len(client.get_inference_statistics()["model_stats"]) == 2


@pytest.mark.parametrize("sent_binary", [True, False])
@pytest.mark.parametrize("wanted_binary", [True, False, None])
@pytest.mark.parametrize("algorithm", [None, "gzip", "deflate"])
def test_it_infers_in_every_form(
    client: Any, sent_binary: bool, wanted_binary: bool | None, algorithm: str | None
):
    inputs = [
        tensor("id", "INT64", np.array([1, 2**62, 3]), binary=sent_binary),
        tensor("x", "FP32", np.array([0.1, 2.0, -0.0], np.float32), binary=sent_binary),
        tensor("act", "BYTES", np.array(["", "", ""], object), binary=sent_binary),
    ]
    outputs = None
    if wanted_binary is not None:
        outputs = [triton.InferRequestedOutput(name, binary_data=wanted_binary) for name in ("y", "id")]
    result = client.infer(
        "probe",
        inputs,
        model_version="3",
        outputs=outputs,
        request_id="r7",
        request_compression_algorithm=algorithm,
        response_compression_algorithm=algorithm,
    )
    assert result.as_numpy("id").tolist() == [1, 2**62, 3]
    expected = np.array([0.1, 2.0, -0.0], np.float32) * np.float32(2) + np.float32(1)
    assert result.as_numpy("y").astype(np.float32).tobytes() == expected.tobytes()
    assert result.get_response()["id"] == "r7"


def test_text_and_tensors_survive(client: Any):
    names = np.array(["Adé", ""], object)
    features = np.arange(16, dtype=np.float32).reshape(2, 8)
    account = triton.InferInput("account", [2], "INT64")
    account.set_data_from_numpy(np.array([1, 2]))
    at = tensor("at", "BYTES", np.array(["2020-01-01T00:00:00Z"] * 2, object))
    inputs = [tensor("name", "BYTES", names), tensor("features", "FP32", features), account, at]
    result = client.infer("linear", inputs)
    assert result.as_numpy("greeting").tolist()[0].decode().endswith("Adé")
    assert result.as_numpy("echo").shape == (2, 2)
    assert result.as_numpy("account").tolist() == [1, 2]


def test_its_error_tells_what_is_wrong(client: Any):
    with pytest.raises(triton.InferenceServerException, match=r"row 1: .*act says reject"):
        client.infer(
            "probe",
            [
                tensor("id", "INT64", np.array([1, 2])),
                tensor("act", "BYTES", np.array(["", "reject"], object)),
            ],
        )
    with pytest.raises(triton.InferenceServerException, match="data-type is 'INT32'"):
        client.infer("probe", [tensor("id", "INT32", np.array([1], np.int32))])
    with pytest.raises(triton.InferenceServerException, match="no model 'prob' is served here"):
        client.infer("prob", [tensor("id", "INT64", np.array([1]))])


def test_many_at_once_get_their_own_answers(probe: Probe):
    async def main() -> list[Any]:
        async with aio.InferenceServerClient(probe.server.url.removeprefix("http://")) as client:
            asked = (client.infer("probe", [tensor("id", "INT64", np.array([n]))]) for n in range(12))
            return await asyncio.gather(*asked)

    assert [result.as_numpy("id").tolist() for result in asyncio.run(main())] == [[n] for n in range(12)]
