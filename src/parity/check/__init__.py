"""The proof: every golden case through this process and every installed runner, and the laws.

Rows go through `Runner.replay`, a runner's whole real path in processes of its own; nothing here takes a
shortcut through the engine but the laws, which are about the handler.

running     run_check, check_goldens
routes      rows through runners, each started once
diagnosing  why a route's answers are not the recorded ones
"""

from parity.check.routes import ENGINE, Progress
from parity.check.running import check_goldens, run_check

__all__ = ["ENGINE", "Progress", "check_goldens", "run_check"]
