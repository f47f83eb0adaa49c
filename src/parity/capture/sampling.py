"""Which requests are in a sample: decided by their ids alone, so that it is the same ones everywhere."""

from __future__ import annotations

import hashlib


def in_sample(request_id: str, rate: float, salt: bytes = b"") -> bool:
    """Whether the request with this id belongs to a sample of this rate.

    A sample of a lower rate is a part of every sample of a higher rate with the same salt; samples with
    different salts are independent. The first 8 bytes of the id's BLAKE2b, read as a fraction of 2**64, are
    below the rate for the ids of the sample.
    """
    if rate >= 1:
        return True
    if rate <= 0:
        return False
    digest = hashlib.blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=8, salt=salt).digest()
    return int.from_bytes(digest, "big") < rate * 2.0**64
