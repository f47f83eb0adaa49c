"""Whether this machine has a Java that Spark runs on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from parity.errors import ConfigError

LEAST = 17


def require_java() -> None:
    """Raise ConfigError when there is no Java of version 17 or newer, saying where it was looked for."""
    found = java_problem(os.environ.get("JAVA_HOME"), os.environ.get("PATH", ""))
    if found:
        raise ConfigError(found)


@cache
def java_problem(home: str | None, path: str) -> str:
    """What keeps Spark from running, in words; empty when nothing does."""
    java = str(Path(home, "bin", "java")) if home else shutil.which("java", path=path)
    remedy = f"install one (Debian: apt-get install openjdk-{LEAST}-jre-headless), or set JAVA_HOME to one"
    if java is None or not Path(java).is_file():
        where = (
            f"JAVA_HOME {home!r} has no bin/java" if home else "there is no java on PATH, and no JAVA_HOME"
        )
        return f"runner 'spark' needs Java {LEAST} or newer, and {where}; {remedy}"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < LEAST:
        first = said.strip().splitlines()[0] if said.strip() else "nothing"
        return f"runner 'spark' needs Java {LEAST} or newer; {java} -version says: {first}; {remedy}"
    return ""
