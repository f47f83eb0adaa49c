"""Compile src/parity/codec/oip.proto into oip_descriptor.py. Needs grpcio-tools; `--check` only compares."""

from __future__ import annotations

import base64
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "parity" / "codec" / "oip.proto"
TARGET = SOURCE.with_name("oip_descriptor.py")

_HEAD = '''"""The serialized descriptor of oip.proto; made by tools/compile_proto.py, not by hand."""

from __future__ import annotations

import base64

DESCRIPTOR = base64.b64decode(
'''


def compiled() -> bytes:
    """The serialized FileDescriptorProto of the source."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc  # pyright: ignore[reportMissingTypeStubs]

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        code = protoc.main(
            ["protoc", f"--proto_path={SOURCE.parent}", f"--descriptor_set_out={target}", SOURCE.name]
        )
        if code:
            raise SystemExit(f"protoc failed with exit code {code}")
        found = FileDescriptorSet.FromString(target.read_bytes())
    return found.file[0].SerializeToString(deterministic=True)


def module(descriptor: bytes) -> str:
    """The text of the target."""
    lines = textwrap.wrap(base64.b64encode(descriptor).decode(), 100)
    return _HEAD + "".join(f'    "{line}"\n' for line in lines) + ")\n"


if __name__ == "__main__":
    text = module(compiled())
    if "--check" not in sys.argv:
        TARGET.write_text(text)
        print(f"wrote {TARGET.relative_to(ROOT)}")
    elif TARGET.read_text() != text:
        raise SystemExit(
            f"{TARGET.relative_to(ROOT)} is not what oip.proto makes; run tools/compile_proto.py"
        )
