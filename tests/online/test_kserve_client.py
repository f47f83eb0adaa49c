"""KServe's REST client against a real server: itself where it is installed, and what it sends."""

import asyncio
from typing import Any

import numpy as np
import pytest

from tests.online.serving import Probe, ask

pytestmark = pytest.mark.slow

# What InferenceRESTClient of kserve 0.21 sent, byte by byte.
V1 = b'{"instances":[{"id":1,"x":0.5}]}'
V2 = (
    b'{"id":"q","model_name":"probe","inputs":[{"name":"id","shape":[2],"datatype":"INT64",'
    b'"data":[1,4611686018427387904]}]}'
)
V2_HEAD = (
    b'{"id":"q","model_name":"probe","inputs":[{"name":"id","shape":[2],"datatype":"INT64",'
    b'"parameters":{"binary_data_size":16}}]}'
)
IDS = np.array([1, 2**62], "<i8")


def test_its_requests_are_answered(probe: Probe):
    url = probe.server.url
    headers = {"Accept-Encoding": "gzip, deflate", "Content-Type": "application/json"}
    for path in ("/v1/models/probe", "/v2/models/probe/ready", "/v2/health/live", "/v2/health/ready"):
        assert ask(url, "GET", path, headers=headers)[0] == 200
    answer = ask(url, "POST", "/v1/models/probe:predict", V1, headers)[2]
    assert (answer["predictions"][0]["id"], answer["predictions"][0]["y"]) == (1, 2.0)
    in_json = ask(url, "POST", "/v2/models/probe/infer", V2, headers)[2]
    headers["Content-Type"] = "application/octet-stream"
    headers["Inference-Header-Content-Length"] = str(len(V2_HEAD))
    in_bytes = ask(url, "POST", "/v2/models/probe/infer", V2_HEAD + IDS.tobytes(), headers)[2]
    for answer in (in_json, in_bytes):
        assert answer["id"] == "q"
        assert answer["outputs"][0] == {"name": "id", "datatype": "INT64", "shape": [2], "data": IDS.tolist()}


def test_the_client_itself(probe: Probe):
    kserve: Any = pytest.importorskip(
        "kserve",
        reason="kserve wants psutil<6, our other tests want 7: it needs its own environment",
    )
    url = probe.server.url

    async def main() -> None:
        v1 = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v1"))
        assert await v1.is_model_ready(url, "probe")
        answer = await v1.infer(url, {"instances": [{"id": 1, "x": 0.5}]}, model_name="probe")
        assert answer["predictions"][0]["y"] == 2.0
        v2 = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2"))
        assert await v2.is_server_live(url)
        assert await v2.is_server_ready(url)
        for binary in (False, True):
            ids = kserve.InferInput("id", [2], "INT64")
            ids.set_data_from_numpy(IDS, binary_data=binary)
            asked = kserve.InferRequest("probe", [ids], request_id="q")
            found = await v2.infer(url, asked, model_name="probe")
            assert found.outputs[0].as_numpy().tolist() == IDS.tolist()

    asyncio.run(main())
