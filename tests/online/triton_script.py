"""What a user of Triton's clients has written: `python triton_script.py HTTP GRPC`, for the probe and linear.

Run in a process of its own, so that its client may be of another release. It prints what it was told as JSON.
"""

import asyncio
import importlib
import json
import queue
import sys
from typing import Any

import numpy as np

tritonclient: Any = importlib.import_module("tritonclient")
triton_http: Any = importlib.import_module("tritonclient.http")
triton_aio: Any = importlib.import_module("tritonclient.http.aio")
triton_grpc: Any = importlib.import_module("tritonclient.grpc")

IDS = np.array([1, 2**62, 3])
X = np.array([0.1, 2.0, -0.0], np.float32)


def infer_inputs(kind: Any, **options: Any) -> list[Any]:
    """Three rows for the probe."""
    found = [kind.InferInput("id", [3], "INT64"), kind.InferInput("x", [3], "FP32")]
    found[0].set_data_from_numpy(IDS, **options)
    found[1].set_data_from_numpy(X, **options)
    return found


def told(result: Any) -> dict[str, Any]:
    """The answer's numbers; floats by their bytes."""
    return {"id": result.as_numpy("id").tolist(), "y": result.as_numpy("y").astype("<f4").tobytes().hex()}


def text_rows(kind: Any) -> list[Any]:
    """Two rows for linear, with text."""
    columns = {
        "name": ("BYTES", np.array(["Adé", ""], object)),
        "features": ("FP32", np.arange(16, dtype=np.float32).reshape(2, 8)),
        "account": ("INT64", np.array([1, 2])),
        "at": ("BYTES", np.array(["2020-01-01T00:00:00Z"] * 2, object)),
    }
    found: list[Any] = []
    for name, (datatype, values) in columns.items():
        tensor = kind.InferInput(name, list(values.shape), datatype)
        tensor.set_data_from_numpy(values)
        found.append(tensor)
    return found


def refused(client: Any, kind: Any) -> str:
    """What the client says of a row that is refused."""
    ids, act = kind.InferInput("id", [1], "INT64"), kind.InferInput("act", [1], "BYTES")
    ids.set_data_from_numpy(np.array([1]))
    act.set_data_from_numpy(np.array(["reject"], object))
    try:
        client.infer("probe", [ids, act])
    except kind.InferenceServerException as exc:
        return str(exc)
    return "nothing"


def over_http(address: str) -> dict[str, Any]:
    """What the client over HTTP is told."""
    with triton_http.InferenceServerClient(address) as client:
        found: dict[str, Any] = {
            "live": client.is_server_live() and client.is_server_ready() and client.is_model_ready("probe"),
            "metadata": client.get_model_metadata("linear")["inputs"][0],
            "max_batch": client.get_model_config("linear")["max_batch_size"],
            "index": [model["name"] for model in client.get_model_repository_index()],
            "statistics": [
                entry["name"] for entry in client.get_inference_statistics("probe")["model_stats"]
            ],
            "forms": [
                told(
                    client.infer(
                        "probe",
                        infer_inputs(triton_http, binary_data=sent),
                        outputs=[
                            triton_http.InferRequestedOutput(name, binary_data=wanted) for name in ("id", "y")
                        ],
                        request_id="r7",
                        request_compression_algorithm=algorithm,
                        response_compression_algorithm=algorithm,
                    )
                )
                for sent in (True, False)
                for wanted in (True, False)
                for algorithm in (None, "gzip", "deflate")
            ],
            "async": told(client.async_infer("probe", infer_inputs(triton_http)).get_result()),
            "text": client.infer("linear", text_rows(triton_http)).as_numpy("greeting").tolist()[0].decode(),
            "refused": refused(client, triton_http),
        }
    return {**found, "aio": asyncio.run(over_aio(address))}


async def over_aio(address: str) -> dict[str, Any]:
    """What the asynchronous client is told."""
    async with triton_aio.InferenceServerClient(address) as client:
        return told(await client.infer("probe", infer_inputs(triton_aio)))


def over_grpc(address: str) -> dict[str, Any]:
    """What the client over gRPC is told."""
    with triton_grpc.InferenceServerClient(address) as client:
        metadata = client.get_model_metadata("linear").inputs[0]
        found: dict[str, Any] = {
            "live": client.is_server_live() and client.is_server_ready() and client.is_model_ready("probe"),
            "metadata": {
                "name": metadata.name,
                "datatype": metadata.datatype,
                "shape": list(metadata.shape),
            },
            "max_batch": client.get_model_config("linear").config.max_batch_size,
            "index": [model.name for model in client.get_model_repository_index().models],
            "statistics": [entry.name for entry in client.get_inference_statistics("probe").model_stats],
            "forms": [told(client.infer("probe", infer_inputs(triton_grpc), request_id="r7"))],
            "text": client.infer("linear", text_rows(triton_grpc)).as_numpy("greeting").tolist()[0].decode(),
            "refused": refused(client, triton_grpc),
        }
        answers: queue.Queue[Any] = queue.Queue()
        client.async_infer(
            "probe", infer_inputs(triton_grpc), lambda result, error: answers.put(error or result)
        )
        found["async"] = told(answers.get(timeout=60))
        client.start_stream(lambda result, error: answers.put(error or result))
        client.async_stream_infer("probe", infer_inputs(triton_grpc))
        found["stream"] = told(answers.get(timeout=60))
        client.stop_stream()
    return found


if __name__ == "__main__":
    found = {"http": over_http(sys.argv[1]), "grpc": over_grpc(sys.argv[2])}
    sys.stdout.write(json.dumps({"file": tritonclient.__file__, **found}))
