"""What is installed here: versions, devices, runners, and what each extra of this package lacks.

Nothing heavy is imported but torch, whose devices and threads can be told in no other way, and what does
image operations, which is tried.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from parity import __version__
from parity.errors import ConfigError
from parity.registry import find_runner, runner_names

DISTRIBUTION = "parity"


@dataclass(frozen=True)
class Extra:
    """An extra of this package.

    Attributes:
        name: as in `pip install 'parity[NAME]'`.
        installed: the version of each of its packages that is there.
        missing: the requirements of which no package is there.
    """

    name: str
    installed: Mapping[str, str]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """What `examine` found.

    Attributes:
        parity: this package's version.
        python: Python's version.
        platform: the operating system and machine.
        cpus: the CPU cores that this process may use.
        packages: the versions of the packages that the core needs.
        extras: the extras, in name order.
        runners: the installed runners; what keeps one from working, empty where nothing does.
        devices: the devices that a profile can name, and what they are.
        torch: torch's settings that decide speed and bits; empty without torch.
        vision: what does the image operations that another library may do; empty without torch.
        problems: what is wrong.
    """

    parity: str
    python: str
    platform: str
    cpus: int
    packages: Mapping[str, str]
    extras: tuple[Extra, ...]
    runners: Mapping[str, str]
    devices: Mapping[str, str]
    torch: Mapping[str, str] = field(default_factory=dict[str, str])
    vision: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: tuple[str, ...] = ()

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """The findings as headed lines, for people."""
        here = [f"parity {self.parity}", f"python {self.python}", self.platform, f"{self.cpus} CPU cores"]
        yield "here", here
        yield "packages", [f"{name} {version}" for name, version in self.packages.items()]
        yield "devices", [f"{name}: {what}" for name, what in self.devices.items()]
        if self.torch:
            yield "torch", [f"{name}: {value}" for name, value in self.torch.items()]
        if self.vision:
            yield "vision", [f"{operation}: {what}" for operation, what in self.vision.items()]
        yield (
            "runners",
            [f"{name}: {problem or 'ready'}" for name, problem in self.runners.items()] or ["none"],
        )
        yield "extras", [_extra_line(extra) for extra in self.extras]
        if self.problems:
            yield "problems", list(self.problems)

    def to_dict(self) -> dict[str, object]:
        """The findings as JSON-ready data."""
        return asdict(self)


def examine() -> Findings:
    """Look at this process's Python, its packages, devices and runners."""
    needed, extras = _requirements()
    torch, devices, problems = _torch()
    runners: dict[str, str] = {}
    for name in runner_names():
        try:
            find_runner(name)
            runners[name] = ""
        except ConfigError as exc:
            runners[name] = str(exc)
    return Findings(
        parity=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        packages=dict(sorted(needed.items())),
        extras=extras,
        runners=runners,
        devices=devices,
        torch=torch,
        vision=_vision() if torch else {},
        problems=tuple(problems),
    )


def _requirements() -> tuple[dict[str, str], tuple[Extra, ...]]:
    """The core's packages, and the extras, out of the installed distribution's metadata."""
    try:
        metadata = importlib.metadata.metadata(DISTRIBUTION)
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return {}, ()
    needed: dict[str, str] = {}
    installed: dict[str, dict[str, str]] = {name: {} for name in metadata.get_all("Provides-Extra") or []}
    missing: dict[str, list[str]] = {name: [] for name in installed}
    for text in requirements:
        requirement, _, marker = text.partition(";")
        name = re.split(r"[\s\[<>=!~(]", requirement.strip(), maxsplit=1)[0]
        version = _version(name)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        if extra is None:
            needed[name] = version or "missing"
        elif version is not None:
            installed[extra[1]][name] = version
        else:
            missing[extra[1]].append(requirement.strip())
    names = sorted(installed)
    return needed, tuple(Extra(name, installed[name], tuple(sorted(missing[name]))) for name in names)


def _torch() -> tuple[dict[str, str], dict[str, str], list[str]]:
    devices = {"cpu": platform.processor() or platform.machine()}
    try:
        import torch
    except ImportError as exc:
        return (
            {},
            devices,
            [] if isinstance(exc, ModuleNotFoundError) else [f"torch cannot be imported: {exc}"],
        )
    settings = {
        "version": str(torch.__version__),
        "threads": str(torch.get_num_threads()),
        "interop threads": str(torch.get_num_interop_threads()),
        "cpu capability": str(torch.backends.cpu.get_cpu_capability()),
        "cuda": str(torch.version.cuda or "not built in"),
    }
    if torch.cuda.is_available():
        for position in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(position)
            devices[f"cuda:{position}"] = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
    return settings, devices, []


def _vision() -> dict[str, str]:
    from parity.vision import backends

    return {
        f"{found.operation} on the {found.place}": f"{found.library}, {found.reason}"
        if found.used
        else f"torch; {found.library} is off: {found.reason}"
        for found in backends()
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _extra_line(extra: Extra) -> str:
    if not extra.missing:
        return f"{extra.name}: complete"
    return f"{extra.name}: missing {', '.join(extra.missing)}; pip install 'parity[{extra.name}]'"
