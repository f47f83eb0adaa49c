"""BentoML: one worker; its adaptive batching takes bodies that are lists."""

import base64
import importlib
import os

import bentoml

model = importlib.import_module(f"{os.environ['WORKLOAD']}_model")
batching = {"batchable": True, "max_batch_size": 32, "max_latency_ms": 60_000, "route": "/score"}

if os.environ["WORKLOAD"] == "vector":

    @bentoml.service(workers=1, traffic={"timeout": 60}, logging={"access": {"enabled": False}})
    class Model:
        def __init__(self) -> None:
            self.net = model.load()

        @bentoml.api(**batching)
        def score(self, x: list[list[float]]) -> list[float]:
            return model.score(self.net, [x]).tolist()

else:

    @bentoml.service(workers=1, traffic={"timeout": 60}, logging={"access": {"enabled": False}})
    class Model:
        def __init__(self) -> None:
            self.net = model.load()

        @bentoml.api(**batching)
        def score(self, x: list[str]) -> list[float]:
            return model.score(self.net, [[base64.b64decode(item) for item in x]]).tolist()
