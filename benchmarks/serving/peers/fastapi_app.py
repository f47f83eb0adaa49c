"""Plain FastAPI: the tabular model on the loop, the pictures in the thread pool, one request at a time."""

import importlib
import sys

import uvicorn
from fastapi import FastAPI, Request
from pydantic import BaseModel

workload, port = sys.argv[1], int(sys.argv[2])
model = importlib.import_module(f"{workload}_model")
net = model.load()
app = FastAPI()


class Row(BaseModel):
    x: list[float]


if workload == "vector":

    @app.post("/score")
    async def score_row(row: Row) -> dict[str, float]:
        return {"score": float(model.score(net, [[row.x]])[0])}

else:
    from starlette.concurrency import run_in_threadpool

    @app.post("/score")
    async def score_picture(request: Request) -> dict[str, float]:
        data = await request.body()
        return {"score": float((await run_in_threadpool(model.score, net, [[data]]))[0])}


uvicorn.run(app, port=port, log_level="warning", access_log=False)
