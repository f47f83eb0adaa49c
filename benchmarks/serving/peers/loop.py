"""The loop in one process: what the model gives without a server.

    python loop.py WORKLOAD PLAN.json SECONDS

Prints rows per second, 16 rows at a time on one thread.
"""

import base64
import importlib
import json
import sys
import time
from pathlib import Path

workload, plan, seconds = sys.argv[1], json.loads(Path(sys.argv[2]).read_text()), float(sys.argv[3])
model = importlib.import_module(f"{workload}_model")
net = model.load()
bodies = [base64.b64decode(body) for body in plan["bodies"]]
done, place, started, until = 0, 0, 0.0, 0.0
for turn in range(10**9):
    batch = [bodies[(place + step) % len(bodies)] for step in range(16)]
    place += 16
    model.score(net, [batch if workload == "picture" else [json.loads(body)["x"] for body in batch]])
    if turn == 2:  # warm by now
        started = time.perf_counter()
        until = started + seconds
    elif turn > 2:
        done += 16
        if time.perf_counter() > until:
            print(json.dumps({"rps": done / (time.perf_counter() - started)}))
            break
