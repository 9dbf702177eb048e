"""A method's class by its name, as the kind that a test expects it to be."""

from __future__ import annotations

from typing import Any

from fedrec.core.method import Method
from fedrec.core.reference import Reference
from fedrec.methods.registry import find


def find_federated(name: str) -> type[Method[Any, Any, Any, Any]]:
    kind = find(name)
    assert issubclass(kind, Method)
    return kind


def find_reference(name: str) -> type[Reference[Any]]:
    kind = find(name)
    assert issubclass(kind, Reference)
    return kind
