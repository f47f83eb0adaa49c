"""Record what each operation of parity.vision gives, beside the version of its meaning.

Run as `python tools/vision_outcomes.py` when an operation is new or has a new version. An operation that
gives other values under the version that is recorded is refused: raise its version in
src/parity/vision/meanings.py first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from parity import vision
from tests.vision.outcomes import RECORDED, agrees, outcome


def main() -> int:
    """Write the outcomes, and give 1 where an operation changed without a new version."""
    recorded: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    found: dict[str, Any] = {}
    refused: list[str] = []
    for name, version in sorted(vision.versions().items()):
        before, now = recorded.get(name), outcome(name)
        if before is None or before["version"] != version:
            found[name] = {"version": version, "outcome": now}
        else:
            found[name] = before
            if not agrees(now, before["outcome"]):
                refused.append(name)
    if refused:
        print(
            f"{', '.join(refused)}: other values than recorded for this version; give a new version in "
            "src/parity/vision/meanings.py, or mend what changed",
            file=sys.stderr,
        )
        return 1
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in found.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"wrote {RECORDED}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
