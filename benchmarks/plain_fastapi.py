"""What people write without this library: a FastAPI endpoint that calls the tabular model row by row.

    python -m benchmarks.plain_fastapi PORT async|def

Same weights, one torch thread, uvicorn with uvloop and httptools, as the online runner has.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from safetensors.torch import load_file

HANDLER = Path(__file__).parent / "handlers" / "tabular"
sys.path.insert(0, str(HANDLER))

from tabular_net import TabularNet  # noqa: E402  # pyright: ignore[reportMissingImports]

app = FastAPI()
torch.set_num_threads(1)
net = TabularNet()
net.load_state_dict(load_file(HANDLER / "artifacts" / "model.safetensors"))
net.eval()


class Row(BaseModel):
    """One request."""

    x: list[float]


class Answer(BaseModel):
    """One answer."""

    score: float


def score(row: Row) -> Answer:
    with torch.inference_mode():
        return Answer(score=float(net(torch.tensor([row.x], dtype=torch.float32))[0]))


@app.post("/def")
def score_in_a_thread(row: Row) -> Answer:
    return score(row)


@app.post("/async")
async def score_on_the_loop(row: Row) -> Answer:
    return score(row)


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
