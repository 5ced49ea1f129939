"""Many designs: evaluation in batches, metrics, files.

The folder and the public function ``dse.sweep`` share a name, so this module can be called: ``dse.sweep(space)`` is
:func:`dse.sweep.sweep.sweep`, whichever was imported first.
"""

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run :func:`dse.sweep.sweep.sweep`."""
        from dse.sweep.sweep import sweep

        return sweep(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
