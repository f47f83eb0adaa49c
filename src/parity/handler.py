"""Handler, the one class that a user writes, and Context, what it is given when it is loaded."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from parity.batch import Batch
from parity.codec.rows import RowDecoder
from parity.errors import ConfigError, did_you_mean
from parity.frame.static import unknown_verbs
from parity.manifest import Manifest
from parity.profile import Profile
from parity.schema import Schema

if TYPE_CHECKING:
    import torch

    Module = TypeVar("Module", bound=torch.nn.Module)


class Handler:
    """Base class of all handlers: subclass it, declare the two schemas, write the stages.

    The same object serves every runner. `preprocess` and `postprocess` may run on several threads at once
    and on batches of any size, so nothing about a request may be kept on `self`. Batches are never empty.
    An answer must not depend on the other rows of the batch.

    Attributes:
        inputs: the schema of a row; values that do not fit never reach a stage.
        outputs: the schema of an answer; what `postprocess` returns is checked against it.
        context: set before `initialize` is called.
    """

    inputs: ClassVar[Schema]
    outputs: ClassVar[Schema]
    context: Context

    def initialize(self, context: Context) -> None:
        """Load the model and whatever else the stages need; called once, before any batch."""

    def preprocess(self, batch: Batch) -> Any:
        """Turn a batch of rows into what the model takes.

        Args:
            batch: the rows; `batch["name"].numpy()` and `.torch(device)` give columns. Read-only.

        Returns:
            An array, or a dict, tuple or dataclass of arrays, whose first dimension is the rows; a list is
            one item a row. That is what can be padded to a bucket.
        """
        return {name: column.numpy() for name, column in batch.items()}

    def inference(self, inputs: Any) -> Any:
        """Run the model.

        Args:
            inputs: what `preprocess` returned, padded to the profile's bucket with copies of a real row.

        Returns:
            Arrays of the same form as the inputs: first dimension the rows, padding included.
        """
        return inputs

    def postprocess(self, outputs: Any, batch: Batch) -> Mapping[str, Any]:
        """Turn what the model said into answers.

        Args:
            outputs: what `inference` returned, without the padding.
            batch: the rows that the answers belong to.

        Returns:
            For each field of `outputs` an array of exactly its dtype and shape (rows, *row_shape), or a list
            with one Python value a row.
        """
        return outputs


@dataclass(frozen=True)
class Context:
    """What a handler is given when it is loaded.

    Attributes:
        profile: device, precision, buckets and the other numerics.
        root: the handler's folder; None for a class that lives in no folder.
        config: the `[config]` table of handler.toml.
        logger: a logger of the handler's own.
    """

    profile: Profile
    root: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("parity.handlers"))

    @property
    def device(self) -> str:
        """The device of the profile, as torch spells it."""
        return self.profile.device

    def path(self, relative: str) -> Path:
        """A file of the handler's folder; in `artifacts/` too, when it is not found beside handler.py.

        Raises:
            ConfigError: the handler has no folder, or there is no such file in it (near names are given).
        """
        if self.root is None:
            raise ConfigError(f"file {relative!r}: this handler has no folder; load it by folder or by file")
        for candidate in (self.root / relative, self.root / "artifacts" / relative):
            if candidate.is_file():
                return candidate
        found = {str(file.relative_to(self.root)) for file in self.root.rglob("*") if file.is_file()}
        raise ConfigError(f"no file {relative!r} in {self.root}; {did_you_mean(relative, found)}")

    def load_json(self, relative: str) -> Any:
        """The parsed JSON file `relative`; raises ConfigError when it is missing or broken."""
        path = self.path(relative)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as exc:
            raise ConfigError(f"{path}: not JSON: {exc}") from exc

    def load_arrays(self, relative: str) -> dict[str, np.ndarray[Any, Any]]:
        """The named arrays of a safetensors file; raises ConfigError when it is missing or broken."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        path = self.path(relative)
        try:
            return load_file(path)
        except SafetensorError as exc:
            raise ConfigError(f"{path}: not a safetensors file: {exc}") from exc

    def load_model(
        self,
        relative: str,
        module: Module,
        *,
        varying: Mapping[int | str, Sequence[int]] | None = None,
    ) -> Module:
        """The torch module with the weights of a safetensors file, run as the profile says.

        In eval mode, without gradients, on the profile's device, its floating-point weights in the profile's
        precision. Weights are data: nothing in the file is executed. What comes back is called as the module
        is; with another backend than "eager" that is all that can be done with it.

        Args:
            relative: the file, as for `path`.
            module: the module, its weights of any value.
            varying: for backends that compile, the dimensions of an argument, by its position or name, that
                differ from call to call; the first one, the rows, always may: {0: [1]} for texts of any
                length, padded to the longest.

        Raises:
            ConfigError: the file is missing or broken, or its weights are not exactly the module's; or the
                profile's backend cannot be used here.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.path(relative)
        try:
            weights = load_file(path)
            module.load_state_dict(weights, strict=True)
        except (SafetensorError, RuntimeError) as exc:
            raise ConfigError(f"{path} does not fit {type(module).__name__}: {exc}") from exc
        return self.run_model(module, varying=varying)

    def run_model(
        self, module: Module, *, varying: Mapping[int | str, Sequence[int]] | None = None
    ) -> Module:
        """A torch module whose weights are loaded, run as the profile says; see `load_model`.

        Raises:
            ConfigError: the profile's backend cannot be used here.
        """
        from parity.models import prepare

        return prepare(module, self.profile, varying)


@dataclass(frozen=True)
class LoadedHandler:
    """A handler class with what was found beside it; not yet initialized.

    Attributes:
        cls: the user's class.
        manifest: its handler.toml, or defaults.
        root: the folder it lives in; None for an importable class.
        ref: the reference that loads it again in another process.
        app_dir: the folder put on the import path for a `package.module:Class` reference.
    """

    cls: type[Handler]
    manifest: Manifest
    root: Path | None = None
    ref: str = ""
    app_dir: str | None = None

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs"):
            if not isinstance(getattr(self.cls, name, None), Schema):
                raise ConfigError(
                    f"handler class {self.cls.__name__} has no schema {name!r}; "
                    f"write {name} = Schema(...) in it"
                )
        _refuse_unknown_verbs(self.cls)
        RowDecoder(self.inputs)  # a default that does not fit its field fails here, not with the first row

    @classmethod
    def of(cls, handler: type[Handler]) -> LoadedHandler:
        """A class defined in this process, a notebook cell for instance, with no folder."""
        name = str(getattr(handler, "name", handler.__name__.lower()))
        version = str(getattr(handler, "version", "1"))
        return cls(handler, Manifest(name=name, version=version))

    @property
    def name(self) -> str:
        """The handler's name in URLs, goldens and reports."""
        return self.manifest.name

    @property
    def version(self) -> str:
        """The handler's version."""
        return self.manifest.version

    @property
    def inputs(self) -> Schema:
        """The schema of a row."""
        return self.cls.inputs

    @property
    def outputs(self) -> Schema:
        """The schema of an answer."""
        return self.cls.outputs

    def profile(self, name: str = "default") -> Profile:
        """The profile called `name`; raises ConfigError when there is none."""
        return self.manifest.profile(name)

    @cached_property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the source (code and schemas) and of the artifacts, by file content.

        "source" covers every .py file and handler.toml of the folder, "artifacts" every other file but
        README, tests, goldens, certificates, caches and what batch jobs wrote there. For a class without a
        folder, "source" covers the schemas only.
        """
        source, artifacts = hashlib.sha256(), hashlib.sha256()
        for schema in (self.inputs, self.outputs):
            source.update(schema.digest_text().encode())
        for path in sorted(files_of(self.root)) if self.root is not None else ():
            relative = path.relative_to(self.root or path)
            target = source if path.suffix == ".py" or relative.name == "handler.toml" else artifacts
            content = path.read_bytes()
            target.update(f"{relative.as_posix()}\0{len(content)}\0".encode())
            target.update(content)
        return {"source": source.hexdigest(), "artifacts": artifacts.hexdigest()}


def _refuse_unknown_verbs(cls: type[Handler]) -> None:
    """Raise ConfigError where the class's file asks a frame of a batch for a verb that frames do not have."""
    path = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    try:
        source = Path(path).read_text(encoding="utf-8") if path.endswith(".py") else ""
    except (OSError, ValueError):
        return
    found = unknown_verbs(source)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ConfigError(f"{path}, line {found[0].line}: {found[0].message}{more}")


def files_of(root: Path) -> Iterator[Path]:
    """The files of a handler's folder that have a say in its answers."""
    for here, folders, names in os.walk(root):
        if _BATCH_OUTPUT.issubset([*folders, *names]):
            folders.clear()
            continue
        beside = ("golden", "tests", "certificates") if Path(here) == root else ()
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN) and name not in beside]
        for name in names:
            path = Path(here, name)
            if not name.startswith(_HIDDEN) and path.suffix not in _OTHERS and path.is_file():
                yield path


_HIDDEN = (".", "__pycache__")

_OTHERS = (".md", ".pyc", ".parity")

_BATCH_OUTPUT = {"_manifest.json", "_units"}
"""What the output folder of a batch job holds from its first part on; its files come and go with the job."""
