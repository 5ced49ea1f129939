"""Which designs are best: Pareto search, gradients, explanations.

The folder and the public function ``dse.search`` share a name, so this module can be called: ``dse.search(space)`` is
:func:`dse.search.search.search`, whichever was imported first.
"""

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run :func:`dse.search.search.search`."""
        from dse.search.search import search

        return search(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
