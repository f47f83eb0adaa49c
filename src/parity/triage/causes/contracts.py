"""What a handler declares and does not keep to; its laws observe it, and say so in what they varied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from parity.triage.case import Case, Explained, Finding, Suspect


def _observed(law: str, *names: str) -> Callable[[Case], Finding]:
    """The law is broken, and where it says which of several ways, this is the way."""

    def examine(case: Case) -> Finding:
        if case.law != law:
            return None
        said = {name: value for name, value in case.divergence.varied.items() if name in names}
        if names and not said:
            return None
        what = "; ".join(f"{name} {value}" for name, value in said.items())
        return Explained(what or f"the law {law} saw it")

    return examine


def input_mutated(case: Case) -> Finding:
    """The law saw it; or asked again, the rows are not what they were."""
    seen = _observed("inputs-untouched")(case)
    if seen is not None:
        return seen
    for side in case.sides:
        for name in ("_error",):
            if name not in side.answers.column_names:
                continue
            for error in side.answers.column(name).to_pylist():
                if error is not None and "wrote into" in (error.get("message") or ""):
                    return Explained(str(error["message"]))
    return None


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "input-mutated",
        "a stage writes into the rows, which others read",
        "the rows before and after",
        "copy first: batch['name'].numpy().copy(), or .torch(), which is a copy",
        input_mutated,
        ("contract", "company", "path"),
    )
    yield Suspect(
        "undeclared-read",
        "a stage reads something that is neither a row nor an artifact",
        "files opened and environment variables read while the stages run",
        "make it an input, a setting of handler.toml, or a file of the handler's folder",
        _observed("declared-access", "read", "reads", "environment", "file read"),
        ("contract",),
    )
    yield Suspect(
        "undeclared-write",
        "a stage leaves something behind outside the handler",
        "files written while the stages run",
        "return it as an answer, or log it",
        _observed("declared-access", "write", "writes", "wrote", "file written"),
        ("contract",),
    )
    yield Suspect(
        "undeclared-output",
        "an answer is given that the output schema does not name",
        "the fields that postprocess returned, against the schema",
        "add the field to the output schema, or leave it out",
        _observed("declared-outputs"),
        ("contract",),
    )
    yield Suspect(
        "empty-batch",
        "a batch of no rows fails, or gets something else than no answers",
        "an empty batch asked",
        "return arrays of no rows: np.empty((0, ...)); concatenate and stack need at least one",
        _observed("empty-batch"),
        ("company", "contract"),
    )


SUSPECTS: Final = tuple(_suspects())
