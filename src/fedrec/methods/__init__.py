"""One file per paper, or a folder where a family needs an engine.

``fedrec.methods()`` lists them: the name is that of this package, so the package can be called.
"""

import sys
from types import ModuleType


class _Methods(ModuleType):
    def __call__(self) -> list[str]:
        from fedrec.methods.registry import names

        return names()


sys.modules[__name__].__class__ = _Methods
