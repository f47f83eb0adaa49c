"""MLServer's runtime: a batch is a V2 request with several rows."""

import base64
import importlib
import os

import numpy as np
from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput

workload = os.environ["WORKLOAD"]


class Model(MLModel):
    async def load(self) -> bool:
        self.model = importlib.import_module(f"{workload}_model")
        self.net = self.model.load()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        tensor = payload.inputs[0]
        if workload == "vector":
            rows = np.array(tensor.data.root, np.float32).reshape(-1, 32)
        else:
            rows = [base64.b64decode(item) for item in StringCodec.decode_input(tensor)]
        scores = self.model.score(self.net, [rows]).tolist()
        output = ResponseOutput(name="score", shape=[len(scores), 1], datatype="FP32", data=scores)
        return InferenceResponse(model_name=self.name, outputs=[output])
