"""LitServe: one worker, batches by its own batching."""

import importlib
import sys
from typing import Annotated, Any

import litserve as ls
from fastapi import Body, Request

workload, port = sys.argv[1], int(sys.argv[2])


class Model(ls.LitAPI):
    def setup(self, device: Any) -> None:  # noqa: ARG002
        self.model = importlib.import_module(f"{workload}_model")
        self.net = self.model.load()

    def predict(self, batch: Any) -> Any:
        return self.model.score(self.net, [batch]).tolist()

    def encode_response(self, output: Any) -> Any:
        return {"score": output}


class Vector(Model):
    def decode_request(self, request: Request) -> Any:
        return request["x"]


class Picture(Model):
    def decode_request(self, request: Annotated[bytes, Body()]) -> Any:
        return request


if __name__ == "__main__":
    kind = Vector if workload == "vector" else Picture
    api = kind(max_batch_size=32, batch_timeout=0.002, api_path="/score")
    server = ls.LitServer(api, accelerator="cpu", workers_per_device=1, timeout=60)
    server.run(
        host="127.0.0.1", port=port, num_api_servers=1, log_level="warning", generate_client_file=False
    )
