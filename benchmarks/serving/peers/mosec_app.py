"""Mosec: one worker process behind its Rust server."""

import importlib
import json
import os
from typing import Any

from mosec import Server, Worker

workload = os.environ["WORKLOAD"]


class Model(Worker):
    def __init__(self) -> None:
        self.model = importlib.import_module(f"{workload}_model")
        self.net = self.model.load()

    def deserialize(self, data: bytes) -> Any:
        return json.loads(data)["x"] if workload == "vector" else data

    def forward(self, data: list[Any]) -> list[dict[str, float]]:
        return [{"score": score} for score in self.model.score(self.net, [data]).tolist()]


if __name__ == "__main__":
    server = Server()
    server.append_worker(Model, num=1, max_batch_size=32, max_wait_time=2)
    server.run()
