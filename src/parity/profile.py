"""A profile: the silicon and the numerics that a handler is run with, told apart from the handler's code."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, cast, get_args

from parity.errors import ConfigError, did_you_mean, shown

Precision = Literal["float64", "float32", "bfloat16", "float16", "int8"]
ModelBackend = Literal[
    "eager", "export", "compile", "aot_inductor", "onnxruntime", "openvino", "cuda_graphs", "tensorrt"
]


@dataclass(frozen=True)
class Profile:
    """How a handler is executed.

    Attributes:
        name: the profile's name in handler.toml.
        device: "cpu", "cuda" or "cuda:N".
        precision: the dtype that `Context.load_model` gives a model's weights; with "int8" those of linear
            layers, the others stay float32.
        backend: what runs the models of `Context.load_model`: the module itself ("eager"), or what a compiler
            or another library makes of it; see `parity.models`.
        buckets: batch sizes that inference is padded to, ascending; empty means batches as they come. Rows
            get the same bits in every batch composition only where a bucket was proven to do so: see `exact`.
        threads: intra-op threads of torch; 1 leaves parallelism to batches and requests.
        deterministic: ask torch for deterministic algorithms.
        tf32: allow TF32 in matrix products and convolutions on NVIDIA GPUs.
        seed: seed of the random generators when the handler is loaded.
        exact: promise bit-identical answers in every batch and runner: an engine refuses to load unless a
            certificate of `parity probe` holds here for these settings. Without buckets, the certificate's
            own are taken.
        certificate: where that certificate lies: its file, or the folder of certificates; a relative path is
            below the handler's folder. By default `certificates/` there.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    name: str = "default"
    device: str = "cpu"
    precision: Precision = "float32"
    backend: ModelBackend = "eager"
    buckets: tuple[int, ...] = ()
    threads: int = 1
    deterministic: bool = True
    tf32: bool = False
    seed: int = 0
    exact: bool = False
    certificate: str = ""

    def __post_init__(self) -> None:
        buckets = cast("object", self.buckets)  # a TOML file may say anything
        if _is_count(buckets):
            buckets = (buckets,)
        if not isinstance(buckets, list | tuple) or not all(map(_is_count, cast("list[Any]", buckets))):
            raise self._wrong("buckets", "a list of positive batch sizes such as [16, 32]")
        object.__setattr__(self, "buckets", tuple(sorted(set(cast("list[int]", buckets)))))
        if self.precision not in get_args(Precision):
            raise self._wrong("precision", f"one of {', '.join(get_args(Precision))}")
        if self.backend not in get_args(ModelBackend):
            raise self._wrong("backend", f"one of {', '.join(get_args(ModelBackend))}")
        if self.device != "cpu" and self.device.partition(":")[0] != "cuda":
            raise self._wrong("device", "'cpu', 'cuda' or 'cuda:N'")
        if not _is_count(self.threads):
            raise self._wrong("threads", "a positive number of threads")
        if isinstance(self.seed, bool) or self.seed < 0:
            raise self._wrong("seed", "a number of at least 0")
        for flag in ("deterministic", "tf32", "exact"):
            if not isinstance(getattr(self, flag), bool):
                raise self._wrong(flag, "true or false")

    @classmethod
    def from_mapping(cls, name: str, settings: Mapping[str, Any]) -> Profile:
        """A profile out of a `[profiles.NAME]` table.

        Raises:
            ConfigError: a key is unknown (near names are given) or a value is wrong.
        """
        return cls(name=name).override(settings)

    def override(self, settings: Mapping[str, Any]) -> Profile:
        """The profile with some settings replaced; raises ConfigError as `from_mapping` does."""
        known = {field.name for field in fields(self)} - {"name"}
        for key, value in settings.items():
            if key not in known:
                raise ConfigError(f"profile {self.name!r} has no setting {key!r}; {did_you_mean(key, known)}")
            expected = type(getattr(self, key))
            if expected in (str, int) and (not isinstance(value, expected) or isinstance(value, bool)):
                raise ConfigError(f"profile {self.name!r}: {key} = {shown(value)} is no {expected.__name__}")
        return replace(self, **settings)

    def with_settings(self, assignments: Iterable[str]) -> Profile:
        """The profile with `KEY=VALUE` texts applied, VALUE in TOML (a bare word is a string).

        Raises:
            ConfigError: a text has no "=", or its key or value is wrong.
        """
        settings: dict[str, Any] = {}
        for text in assignments:
            key, equals, value = text.partition("=")
            if not equals:
                raise ConfigError(f"setting {text!r} is not of the form KEY=VALUE, such as buckets=[32]")
            try:
                settings[key.strip()] = tomllib.loads(f"value = {value}")["value"]
            except tomllib.TOMLDecodeError:
                settings[key.strip()] = value.strip()
        return self.override(settings)

    def to_settings(self) -> list[str]:
        """The profile as `KEY=VALUE` texts that `with_settings` reads back, for another process."""
        values = {**asdict(self), "buckets": list(self.buckets)}
        values.pop("name")
        return [f"{key}={json.dumps(value)}" for key, value in values.items()]

    def bucket_for(self, rows: int) -> int | None:
        """The smallest bucket that holds `rows` rows; None without buckets.

        Raises:
            ConfigError: the batch is larger than the largest bucket.
        """
        if not self.buckets:
            return None
        for size in self.buckets:
            if size >= rows:
                return size
        raise ConfigError(
            f"profile {self.name!r}: {rows} rows do not fit the largest bucket {self.buckets[-1]}"
        )

    @property
    def max_rows(self) -> int | None:
        """The most rows that inference takes at once: the largest bucket; None without buckets."""
        return self.buckets[-1] if self.buckets else None

    def whole_buckets(self, rows: int) -> int:
        """The most rows up to `rows` that fill the largest bucket again and again; at least one bucket.

        In pieces of so many rows only the last one of a dataset is padded. Without buckets it is `rows`.
        """
        return rows if self.max_rows is None else max(1, rows // self.max_rows) * self.max_rows

    def _wrong(self, key: str, expected: str) -> ConfigError:
        return ConfigError(f"profile {self.name!r}: {key} = {shown(getattr(self, key))} is not {expected}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
