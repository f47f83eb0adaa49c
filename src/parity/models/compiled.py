"""`prepare`: a torch module as the profile's backend runs it."""

from __future__ import annotations

import copy
import logging
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from parity import numerics
from parity.errors import CompileError, ParityError
from parity.models.backend import Backend, Job, Run, find_backend, require
from parity.models.cache import kept
from parity.models.program import Program, in_short
from parity.profile import Profile

logger = logging.getLogger(__name__)

_compiling: Final = threading.RLock()
"""torch's exporter and compilers keep state of their own; one model at a time goes through them."""


def prepare(module: Any, profile: Profile, varying: Mapping[int | str, Sequence[int]] | None = None) -> Any:
    """The module in eval mode, without gradients, on the profile's device, in its precision and backend.

    With backend "eager" it is the module itself. Otherwise it is a `CompiledModel`, which is called as the
    module is, and compiles it for the arguments of its first call; the number of rows may then differ from
    call to call, and of other dimensions those named in `varying`.

    Args:
        module: the torch module, its weights loaded.
        profile: device, precision and backend.
        varying: for an argument, by position or name, the dimensions beside the rows that vary.

    Raises:
        ConfigError: the backend cannot be used here; the message says why, and how to mend it.
    """
    import torch

    require(profile)
    module.requires_grad_(requires_grad=False)
    module.eval()
    if profile.precision == "int8":
        from parity.models.quantized import quantize

        module = quantize(module.to(device=profile.device, dtype=torch.float32))
    else:
        module = module.to(device=profile.device, dtype=getattr(torch, profile.precision))
    if profile.backend == "eager":
        return module
    return CompiledModel(module, profile, find_backend(profile.backend), varying)


class CompiledModel:
    """A module run by a backend. It can be called, from several threads; what else a module has, it has not.

    Args:
        module: in eval mode, on the profile's device, in its precision.
        profile: how it is run.
        backend: what runs it.
        varying: for an argument, by position or name, the dimensions beside the rows that vary.
    """

    def __init__(
        self,
        module: Any,
        profile: Profile,
        backend: Backend,
        varying: Mapping[int | str, Sequence[int]] | None = None,
    ) -> None:
        self._module, self._profile, self._backend, self._varying = module, profile, backend, varying
        self._program: Program | None = None
        self._run: Run | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module would return.

        Raises:
            CompileError: the module cannot be compiled.
            ConfigError: dtypes or shapes are not those of its first call.
        """
        run = self._run or self._compiled(args, kwargs)
        program = self._program
        assert program is not None, "a program comes before its run"
        return program.restored(run(program.flattened(args, kwargs)))

    def __repr__(self) -> str:
        return f"{type(self._module).__name__} by {self._backend.name}"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"{name!r}: a model of backend {self._backend.name!r} can only be called; do the rest in the "
            "module's forward, or before context.load_model"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledModel:
        return CompiledModel(copy.deepcopy(self._module, memo), self._profile, self._backend, self._varying)

    def __reduce__(self) -> Any:
        return CompiledModel, (self._module, self._profile, self._backend, self._varying)

    def _compiled(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Run:
        import torch

        with _compiling:
            if self._run is not None:
                return self._run
            profile, backend = self._profile, self._backend
            started = time.perf_counter()
            with torch.inference_mode(mode=False), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # compilers warn of what they use themselves
                # Weights that came into being under inference mode cannot be traced; their copies can.
                program = Program(
                    copy.deepcopy(self._module),
                    args,
                    kwargs,
                    varying=self._varying,
                    max_rows=profile.max_rows,
                )
                try:
                    run = self._made(program)
                except ParityError:
                    raise
                except Exception as exc:  # compilers raise whatever they like
                    logger.debug("event=compile_failed backend=%s", backend.name, exc_info=True)
                    raise CompileError(
                        f"profile {profile.name!r}: {backend.name} cannot compile "
                        f"{type(self._module).__name__}: {in_short(exc)}"
                    ) from None
            numerics.apply_to_thread(profile, again=True)  # compilers leave other settings behind
            self._program, self._run = program, run
            logger.info(
                "event=model_compiled backend=%s module=%s seconds=%.2f",
                backend.name,
                type(self._module).__name__,
                time.perf_counter() - started,
            )
            return run

    def _made(self, program: Program) -> Run:
        backend, profile = self._backend, self._profile
        _ = program.out_spec  # a module whose outputs do not fit is told before anything is compiled
        if not backend.builds:
            return backend.open(Job(program, profile, Path()))  # which may need the example again
        place = kept(program, backend, profile, lambda folder: backend.build(Job(program, profile, folder)))
        run = backend.open(Job(program, profile, place))
        program.forget()
        return run
