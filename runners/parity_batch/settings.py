"""How a batch job runs, as a user says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from parity.batch_engines import LOCAL, BatchEngine
from parity.errors import ConfigError, did_you_mean, shown
from parity.output_form import OutputForm
from parity.profile import Profile
from parity.sizing import AUTO
from parity_batch.formats import check_format

MAX_ROW_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Settings:
    """How a job runs; nothing here but `batch_rows` and the profile has a say in what comes out.

    Attributes:
        profile: device, precision, buckets; the handler's default profile when None.
        batch_rows: rows in a micro-batch; by default 1024, or what fills the largest bucket. "auto" measures
            it before the first row is scored, see `parity_batch.sizing`.
        workers: units to score at once, each with a handler of its own; by default one for each CPU core,
            and one for other devices. Another engine than "local" has defaults of its own.
        preprocess_workers: threads that preprocess for each of them, with its stages overlapped; by default
            0, no overlap, but 1 where there is a single worker.
        preprocess_processes: processes that preprocess for each worker, each with the handler loaded, for
            preprocessing that keeps the GIL; there are at least as many `preprocess_workers`.
        max_errors: the most rows that may fail before the job stops, a number or a share of all rows as "1%";
            by default any number but all of them.
        max_row_bytes: the most bytes that the inputs of a row may have; a larger row is a row error.
        on_file_error: what an input file does that cannot be read: "stop" the job, or "skip" it.
        restart: remove what an earlier job left in the output folder.
        renames: fields of the handler that are read from a column of another name, with that name.
        where: a condition; rows for which it does not hold are left out (see `parity_batch.where`).
        form: which types columns are written as.
        input_format: the format of the inputs; by default what their names tell.
        input_version: of a Delta Lake or Iceberg table, the version or snapshot; by default the current one.
        delimiter: what stands between the cells of CSV; by default a comma.
        types: for columns of text files that no field is read from, what they hold (`text_types.TYPES`).
        log_failures: whether log lines and errors tell texts of failed rows, which may quote them, or only
            kinds, types and places in the code; `_errors` has the texts in any case.
        engine: what spreads the units: "local", the name of an installed one, or one.
        engine_options: settings for an installed engine.
    """

    profile: Profile | None = None
    batch_rows: int | Literal["auto"] | None = None
    workers: int | None = None
    preprocess_workers: int | None = None
    preprocess_processes: int | None = None
    max_errors: int | str | None = None
    max_row_bytes: int = MAX_ROW_BYTES
    on_file_error: Literal["stop", "skip"] = "stop"
    restart: bool = False
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    where: str = ""
    form: OutputForm = field(default_factory=OutputForm)
    input_format: str | None = None
    input_version: str | None = None
    delimiter: str = ""
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    log_failures: bool = True
    engine: str | BatchEngine = LOCAL
    engine_options: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if isinstance(self.batch_rows, str) and self.batch_rows != AUTO:
            raise ConfigError(f"batch_rows = {shown(self.batch_rows)} is neither a number of rows nor 'auto'")
        least_of = {
            "batch_rows": 1,
            "workers": 1,
            "preprocess_workers": 0,
            "preprocess_processes": 0,
            "max_errors": 0,
            "max_row_bytes": 1,
        }
        for name, least in least_of.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, str) and value < least:
                raise ConfigError(f"{name} = {value} must be at least {least}")
        self.most_errors(100)
        if self.input_format is not None:
            check_format(self.input_format)
        if self.delimiter and (
            len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n'
        ):
            raise ConfigError(
                f"--delimiter {shown(self.delimiter)} is not one character; say, ';' or '|', and tsv for tabs"
            )
        if self.on_file_error not in ("stop", "skip"):
            raise ConfigError(f"on_file_error = {shown(self.on_file_error)} is neither 'stop' nor 'skip'")

    def most_errors(self, rows: int) -> int | None:
        """The most rows of a job of so many that may fail; None where any number may but all."""
        if self.max_errors is None or isinstance(self.max_errors, int):
            return self.max_errors
        text = self.max_errors.strip()
        try:
            value = float(text[:-1]) if text.endswith("%") else int(text)
        except ValueError:
            value = -1
        if not value >= 0 or (text.endswith("%") and not value <= 100):
            raise ConfigError(
                f"max_errors = {shown(self.max_errors)} is no number of rows and no share such as '1%'"
            )
        return int(rows * value / 100) if text.endswith("%") else int(value)

    def with_defaults(self, table: Mapping[str, Any]) -> Settings:
        """The settings, with those of a handler.toml's `[batch]` table where none was given.

        Raises:
            ConfigError: a key is unknown (near names are given), or a value is no number in range.
        """
        known = ("batch_rows", "workers", "preprocess_workers", "preprocess_processes")
        found: dict[str, Any] = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigError(f"handler.toml: [batch] has no setting {key!r}; {did_you_mean(key, known)}")
            is_auto = key == "batch_rows" and value == AUTO
            if not is_auto and (isinstance(value, bool) or not isinstance(value, int)):
                hint = " or 'auto'" if key == "batch_rows" else ""
                raise ConfigError(f"handler.toml: [batch] {key} = {shown(value)} is not a whole number{hint}")
            if getattr(self, key) is None:
                found[key] = value
        return replace(self, **found)
