"""The methods that a file defines: imported as a module of its own, and found by what it registers."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from fedrec.core.method import Method
from fedrec.core.reference import Reference
from fedrec.errors import BadInput
from fedrec.methods import registry


def methods_in(path: Path) -> list[str]:
    """Import a file and give the names of the federated methods that it registers; anything else is bad input."""
    if not path.is_file():
        raise BadInput(f"{path} is not a file; give the Python file of a method")
    if path.suffix != ".py":
        raise BadInput(f"{path} is not a Python file; give one that ends in .py")
    module = _imported(path)
    here = {name: kind for name, kind in registry.registered().items() if kind.__module__ == module.__name__}
    federated = [name for name, kind in here.items() if issubclass(kind, Method)]
    if federated:
        return federated
    if any(issubclass(kind, Reference) for kind in here.values()):
        raise BadInput(f"{path} registers centralised references only; the laws are about federated methods")
    own = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
    lost = [kind.__name__ for kind in own if issubclass(kind, Method)]
    if lost:
        raise BadInput(f"{path} defines {', '.join(lost)} but registers nothing; put @register above the class")
    raise BadInput(f"{path} has no method in it; derive a class from fedrec.core.method.Method and put @register above")


def _imported(path: Path) -> ModuleType:
    """The file as a module, under a name that no package has."""
    name = f"fedrec_checked_{re.sub(r'[^0-9A-Za-z]+', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        del sys.modules[name]
        said = " ".join(str(problem).split())
        raise BadInput(f"{path}{_line(problem, path)} cannot be imported: {type(problem).__name__}: {said}") from None
    return module


def _line(problem: BaseException, path: Path) -> str:
    """``:12`` where line 12 of the file is to blame."""
    if isinstance(problem, SyntaxError) and problem.lineno:
        return f":{problem.lineno}"
    frames = traceback.extract_tb(problem.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
    return f":{lines[-1]}" if lines and lines[-1] else ""
