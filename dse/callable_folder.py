"""Folders that share their name with a public function: ``dse.sweep`` is a package and the function ``sweep``."""

import inspect
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


class CallableFolder(ModuleType):
    """The module of a folder, such as ``dse.sweep``, which is called and shown as :func:`dse.sweep.sweep.sweep`.

    The function is imported only when it is called or looked at (``help``, ``inspect.signature``, ``?`` of a notebook),
    so that a folder imports nothing heavy.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _function(self)(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(_function(self))

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What help() says of the function: what it does, how it is called, and the rest."""
        function = _function(self)
        first, _, rest = (inspect.getdoc(function) or "").partition("\n")
        return f"{first}\n\n    {self.__name__}{_without_types(inspect.signature(function))}\n{rest}"


def _function(folder: ModuleType) -> Callable[..., Any]:
    name = folder.__name__.rpartition(".")[2]
    return getattr(import_module(f"{folder.__name__}.{name}"), name)


def _without_types(signature: inspect.Signature) -> inspect.Signature:
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=plain, return_annotation=signature.empty)
