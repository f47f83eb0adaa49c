"""Ray Serve: one replica, batches by its decorator."""

import importlib
import signal
import sys
import threading
from typing import Any

import ray
from ray import serve
from starlette.requests import Request

workload, port = sys.argv[1], int(sys.argv[2])


@serve.deployment(num_replicas=1, max_ongoing_requests=256, ray_actor_options={"num_cpus": 1})
class Model:
    def __init__(self, workload: str) -> None:
        self.is_row = workload == "vector"
        self.model = importlib.import_module(f"{workload}_model")
        self.net = self.model.load()

    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.002)
    async def score(self, items: list[Any]) -> list[float]:
        return self.model.score(self.net, [items]).tolist()

    async def __call__(self, request: Request) -> dict[str, float]:
        item = (await request.json())["x"] if self.is_row else await request.body()
        return {"score": await self.score(item)}


ended = threading.Event()
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: ended.set())
ray.init(num_cpus=2, object_store_memory=200_000_000, include_dashboard=False, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(Model.bind(workload), route_prefix="/score")
ended.wait()
serve.shutdown()
ray.shutdown()
