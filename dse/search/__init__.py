"""Which designs are best: Pareto search, gradients, explanations.

The folder and the public function ``dse.search`` share a name, so this module can be called: ``dse.search(space)`` is
:func:`dse.search.search.search`, whichever was imported first.
"""

import sys

from dse.callable_folder import CallableFolder

sys.modules[__name__].__class__ = CallableFolder
