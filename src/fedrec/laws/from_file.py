"""The methods that a file defines: imported as a module of its own, and found by what it registers."""

from __future__ import annotations

from pathlib import Path

from fedrec.core.method import Method
from fedrec.core.reference import Reference
from fedrec.errors import BadInput
from fedrec.methods import registry
from fedrec.methods.from_file import imported


def methods_in(path: Path) -> list[str]:
    """Import a file and give the names of the federated methods that it registers; anything else is bad input."""
    module = imported(path)
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
