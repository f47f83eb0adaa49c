"""Notebooks executed by the interpreter that runs the tests, whatever kernels its user has installed."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

NAME = "parity-tests"


def execute(notebook: NotebookNode, folder: Path, timeout_s: int = 100) -> None:
    """Execute every cell in a new kernel whose working folder is `folder`; the outputs go into the notebook.

    Raises:
        CellExecutionError: a cell raised.
    """
    with tempfile.TemporaryDirectory(prefix="parity-kernel-") as temporary:
        place = Path(temporary)
        spec = place / "kernels" / NAME
        spec.mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (spec / "kernel.json").write_text(
            json.dumps({"argv": argv, "display_name": NAME, "language": "python"})
        )
        manager = AsyncKernelManager(
            kernel_name=NAME,
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(spec.parent)], ensure_native_kernel=False),
            connection_file=str(place / "connection.json"),
            transport="ipc",
        )
        client = NotebookClient(
            notebook, km=manager, timeout=timeout_s, resources={"metadata": {"path": str(folder)}}
        )
        # nbclient ends only the kernels that it made the manager of, unless told.
        client.execute(cleanup_kc=True, env={**os.environ, "IPYTHONDIR": str(place / "ipython")})
