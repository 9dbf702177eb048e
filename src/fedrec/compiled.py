"""numba's ``njit`` with a cache on disk that cannot go stale.

numba asks of a cached kernel whether its own file has changed, and nothing else: functions and constants that it takes
from other files are compiled into it, and a change there went unnoticed. Here the question covers every file of the
package that the kernel's file imports, directly or through others. Kernels get ``njit`` from here, never from numba;
``tests/test_architecture.py`` keeps it so.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from numba.core import config as _config

config: Any = _config  # numba fills it in at run time


class _Followed:
    """A place for cached kernels whose stamp covers all the sources that a kernel is made of."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        super().__init__(py_func, py_file)  # type: ignore[call-arg]
        self._module = str(py_func.__module__)

    def get_source_stamp(self) -> tuple[Any, str, str]:
        own = super().get_source_stamp()  # type: ignore[misc]
        return own, sources_stamp(self._module), numba.__version__


class UserProvided(_Followed, caching.UserProvidedCacheLocator):
    """``NUMBA_CACHE_DIR``, where it is set."""


class InTree(_Followed, caching.InTreeCacheLocator):
    """``__pycache__`` beside the source."""


class UserWide(_Followed, caching.UserWideCacheLocator):
    """The user's cache folder, where the source cannot be written to."""

    def ensure_cache_path(self) -> None:
        if not Path(str(self._cache_path)).is_absolute():  # a user without a home: it would lie wherever we are
            raise FileNotFoundError("the user has no home")
        super().ensure_cache_path()  # type: ignore[no-untyped-call]


KINDS: tuple[Any, ...] = (UserProvided, InTree, UserWide)
PLACES = ",".join(f"{kind.__module__}.{kind.__name__}" for kind in KINDS)


def njit(*signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """:func:`numba.njit`; only what is compiled here is cached in this way.

    A function whose sums may be reordered (``fastmath``) becomes part of each kernel that calls it. Called, it would
    exist twice, compiled by itself and within the kernel, in orders of their own; the process that compiled a kernel
    took the one, those that loaded it the other, and a machine's first run had other last bits than all later ones.

    Where nothing can be kept (a read-only installation, a user without a home) each process compiles for itself. A
    folder for all in ``/tmp`` would not do: what lies in a cache is executed, and anybody could have put it there.
    """
    liberties = options.get("fastmath", False)
    reordered = liberties is True or (bool(liberties) and "reassoc" in liberties)
    compiled = numba.njit(*signature, forceinline=reordered, **options)

    def decorated(function: Callable[..., Any]) -> Any:
        before, config.CACHE_LOCATOR_CLASSES = config.CACHE_LOCATOR_CLASSES, PLACES
        try:
            return compiled(function)
        except RuntimeError:  # no place for a cache
            if not options.get("cache"):
                raise
            return numba.njit(*signature, forceinline=reordered, **{**options, "cache": False})(function)
        finally:
            config.CACHE_LOCATOR_CLASSES = before

    return decorated


def kept_in() -> Path | None:
    """Where kernels of this package are kept once they are compiled; None where no place can be written to."""
    places = (kind.from_function(njit, __file__) for kind in KINDS)
    return next((Path(place.get_cache_path()) for place in places if place is not None), None)


@cache
def sources_stamp(module: str) -> str:
    """A checksum over the files of a module and of all modules of its package that it imports."""
    package = sys.modules[module.partition(".")[0]]
    root = Path(getattr(package, "__path__", [str(Path(str(package.__file__)).parent)])[0]).parent
    seen: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = _file(root, name)
        if name in seen or file is None:
            continue
        seen[name] = file.read_bytes()
        waiting += imported(seen[name], module.partition(".")[0])
    total = hashlib.sha256()
    for name in sorted(seen):
        total.update(name.encode() + b"\0" + hashlib.sha256(seen[name]).digest())
    return total.hexdigest()


def imported(source: bytes, package: str) -> Iterator[str]:
    """Names of all that a source imports from the package when it is itself imported; a name may be a module or not.

    Imports inside functions and for type checkers alone are passed over: nothing of them is compiled into a kernel.
    """
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == package)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == package:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
        elif isinstance(node, ast.stmt | ast.Module | ast.ExceptHandler | ast.match_case) and not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef
        ):
            waiting += ast.iter_child_nodes(node)


def _file(root: Path, module: str) -> Path | None:
    place = root.joinpath(*module.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)
