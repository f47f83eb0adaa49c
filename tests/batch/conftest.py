"""A dataset, a copy of a handler that a test may change, and a bucket of an S3 server."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs as pafs

from tests.batch.buckets import Bucket
from tests.batch.jobs import ORDERS


@pytest.fixture
def handler(tmp_path: Path) -> Path:
    """A copy of the `orders` handler, to be changed."""
    return Path(shutil.copytree(ORDERS, tmp_path / "orders"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """An S3 server: its port, and the file of rules of what it refuses."""
    rules = tmp_path_factory.mktemp("s3") / "rules"
    rules.touch()
    script = Path(__file__).with_name("s3_server.py")
    process = subprocess.Popen([sys.executable, script, rules], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), rules
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def bucket(
    server: tuple[int, Path], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bucket]:
    """A new bucket of it, and what a process needs to use it."""
    port, rules = server
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ):
        monkeypatch.setenv(name, value)
    files = pafs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True
    )
    name = f"bucket-{abs(hash(request.node.name)):x}"
    files.create_dir(name)
    yield Bucket(files, name, f"endpoint_override=127.0.0.1:{port}&scheme=http", rules)
    rules.write_text("")
