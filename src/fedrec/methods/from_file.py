"""A Python file of methods, imported as a module of its own."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from fedrec.errors import BadInput


def imported(path: Path) -> ModuleType:
    """The file as a module, under a name that no package has; one that cannot be imported is bad input."""
    if not path.is_file():
        raise BadInput(f"{path} is not a file; give the Python file of a method")
    if path.suffix != ".py":
        raise BadInput(f"{path} is not a Python file; give one that ends in .py")
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
