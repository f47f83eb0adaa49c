"""The peers: how each is started, and what it is sent.

All serve the same plain torch module in one model process, batches of at most 32 rows, and wait at most 2 ms
for a batch to fill, where they can be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """A server of the same model.

    Attributes:
        name: as it is asked for; its environment's name, too.
        title: as it is shown.
        arguments: of its environment's interpreter; `{port}`, `{workload}` and `{scratch}` are filled in.
        packages: what its environment holds beside torch, numpy, OpenCV and pyarrow.
        path: where it answers.
        form: what a request is: "row" ({"x": [...]}, or the JPEG file), "list" (a list of one row, pictures
            in base64) or "v2" (V2 JSON, pictures in base64).
        answer: the keys that lead to the score in its JSON.
    """

    name: str
    title: str
    arguments: tuple[str, ...]
    packages: tuple[str, ...]
    path: str
    form: str = "row"
    answer: tuple[str | int, ...] = ("score",)


def _script(name: str) -> tuple[str, ...]:
    return (str(HERE / name), "{workload}", "{port}", "{scratch}")


PEERS = (
    Peer(
        "fastapi",
        "FastAPI, row by row",
        _script("fastapi_app.py"),
        ("fastapi", "uvicorn[standard]"),
        "/score",
    ),
    Peer("litserve", "LitServe", _script("litserve_app.py"), ("litserve",), "/score"),
    Peer(
        "bentoml",
        "BentoML",
        ("-m", "bentoml", "serve", "bentoml_app:Model", "--host", "127.0.0.1", "--port", "{port}"),
        ("bentoml",),
        "/score",
        form="list",
        answer=(0,),
    ),
    Peer("ray", "Ray Serve", _script("ray_app.py"), ("ray[serve]",), "/score"),
    Peer(
        "mosec",
        "Mosec",
        (
            str(HERE / "mosec_app.py"),
            *("--address", "127.0.0.1", "--port", "{port}", "--timeout", "60000", "--log-level", "error"),
        ),
        ("mosec",),
        "/inference",
    ),
    Peer(
        "mlserver",
        "MLServer",
        _script("mlserver_app.py"),
        ("mlserver", "uvloop<0.22"),  # its workers die under a newer one
        "/v2/models/model/infer",
        form="v2",
        answer=("outputs", 0, "data", 0),
    ),
)
