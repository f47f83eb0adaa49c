"""MLServer: one inference worker, adaptive batching."""

import json
import os
import sys
from pathlib import Path

workload, port, scratch = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
settings = {
    "host": "127.0.0.1",
    "http_port": port,
    "grpc_port": port + 1,
    "metrics_port": port + 2,
    "parallel_workers": 1,
    "debug": False,
}
model = {
    "name": "model",
    "implementation": "mlserver_runtime.Model",
    "max_batch_size": 32,
    "max_batch_time": 0.002,
}
scratch.mkdir(parents=True, exist_ok=True)
(scratch / "settings.json").write_text(json.dumps(settings))
(scratch / "model-settings.json").write_text(json.dumps(model))
program = Path(sys.executable).parent / "mlserver"
os.execv(program, [str(program), "start", str(scratch)])
