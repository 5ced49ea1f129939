"""Many designs: evaluation in batches, metrics, files.

The folder and the public function ``dse.sweep`` share a name, so this module can be called: ``dse.sweep(space)`` is
:func:`dse.sweep.sweep.sweep`, whichever was imported first.
"""

import sys

from dse.callable_folder import CallableFolder

sys.modules[__name__].__class__ = CallableFolder
