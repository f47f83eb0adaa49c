"""A new handler's folder: small, real, and with a golden case and a test that pass at once."""

from parity.scaffold.creation import Made, create

__all__ = ["Made", "create"]
