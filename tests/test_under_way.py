from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch

from parity.under_way import Inside, under_way


def test_a_stage_is_told_with_what_it_is_called_with() -> None:
    assert under_way() == []
    with Inside("outer", "preprocess", 3, None), Inside("inner", "inference", 2, None):
        (found,) = under_way()
        assert (found.handler, found.stage, found.rows) == ("inner", "inference", 2)
        assert torch.is_inference_mode_enabled()
    assert under_way() == []
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("where", ["entering", "inside", "leaving"])
def test_nothing_of_a_stage_stays_after_an_exception(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(nullcontext[None]):
        def __enter__(self) -> None:
            if where == "entering":
                raise RuntimeError(where)

        def __exit__(self, *_: object) -> None:
            if where == "leaving":
                raise RuntimeError(where)

    def stream(_: Any) -> AbstractContextManager[Any]:
        return Broken()

    monkeypatch.setattr(torch.cuda, "stream", stream)
    with pytest.raises(RuntimeError, match=where), Inside("one", "inference", 1, object()):
        raise RuntimeError("inside")
    assert under_way() == []
    assert not torch.is_inference_mode_enabled()
