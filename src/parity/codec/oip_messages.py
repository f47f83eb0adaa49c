"""The protobuf messages of oip.proto, in a pool of their own: another library may bring the same names.

Protobuf is imported here and by nobody who does not use gRPC; the extra `grpc` brings it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from parity.codec.oip_descriptor import DESCRIPTOR

__all__ = ["SERVICE", "DecodeError", "message_type", "methods"]

SERVICE = "inference.GRPCInferenceService"

_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(descriptor_pb2.FileDescriptorProto.FromString(DESCRIPTOR))  # pyright: ignore[reportAttributeAccessIssue]


@cache
def message_type(name: str) -> Any:
    """The class of the message `name`, such as "ModelInferRequest"."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"inference.{name}"))


def methods() -> dict[str, tuple[str, str]]:
    """For each method of the service the names of its request and response."""
    service: Any = _POOL.FindServiceByName(SERVICE)
    return {method.name: (method.input_type.name, method.output_type.name) for method in service.methods}
