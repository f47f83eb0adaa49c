"""A bucket of the S3 server that tests start on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs as pafs


@dataclass
class Bucket:
    """A bucket of the server, for one test."""

    files: Any
    name: str
    options: str
    rules: Path

    def url(self, path: str) -> str:
        return f"s3://{self.name}/{path}?{self.options}"

    def contents(self, path: str) -> dict[str, bytes]:
        """What `jobs.contents` tells of a folder on disk."""
        root = f"{self.name}/{path}"
        return {
            name: self.read(f"{path}/{name}")
            for name in self.names(path)
            if root and name.rpartition("/")[2] not in ("_summary.json", ".parity.lock")
        }

    def names(self, path: str) -> list[str]:
        root = f"{self.name}/{path}"
        found = self.files.get_file_info(pafs.FileSelector(root, allow_not_found=True, recursive=True))
        return sorted(item.path.removeprefix(f"{root}/") for item in found if item.is_file)

    def read(self, path: str) -> bytes:
        with self.files.open_input_stream(f"{self.name}/{path}") as stream:
            return stream.read()

    def write(self, path: str, data: bytes) -> None:
        with self.files.open_output_stream(f"{self.name}/{path}") as stream:
            stream.write(data)

    def requests(self) -> list[str]:
        return self.rules.with_suffix(".log").read_text().splitlines()
