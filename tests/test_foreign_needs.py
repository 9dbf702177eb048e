"""What foreign modules need themselves: a package may leave out of its requirements what some of its modules import."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from importlib.util import find_spec
from pathlib import Path

import pytest

from fedrec.extras import EXTRAS
from house import Tree

ROOT = Path(__file__).parent.parent
IMPORTED_AS = {"mlflow-skinny": "mlflow"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirements: list[str]) -> set[str]:
    """Distributions that are required in any case: without those of an extra or of other machines."""
    return {plain(re.split(r"[\[<>=!~ ;(]", one)[0]) for one in requirements if "extra ==" not in one}


@cache
def brought(distribution: str) -> frozenset[str]:
    """A distribution and all that is installed with it."""
    found, waiting = {distribution}, [distribution]
    while waiting:
        try:
            more = named(requires(waiting.pop()) or []) - found
        except PackageNotFoundError:  # of another platform
            continue
        found |= more
        waiting += more
    return frozenset(found)


def with_the(extra: str | None) -> set[str]:
    """All that the base and an extra bring."""
    asked = [*PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] if extra else [])]
    inner = [re.findall(r"\w+", one)[1:] for one in asked if one.startswith("fedrec[")]
    names = named([one for one in asked if not one.startswith("fedrec[")])
    return names.union(*map(brought, names), *(with_the(name) for some in inner for name in some))


def at_its_top(file: Path) -> Iterator[str]:
    """Packages that a module cannot be imported without: not those of a ``try``, an ``if`` or a function."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def file_of(module: str) -> Path | None:
    """Where a module stands, without importing the packages that it is in."""
    package, *parts = module.split(".")
    spec = find_spec(package)
    for folder in spec.submodule_search_locations or [] if spec else []:
        place = Path(folder, *parts)
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None


def foreign() -> Iterator[str]:
    """Modules of other packages that ours name."""
    for found in Tree(ROOT / "src" / "fedrec").imports.values():
        for one in found:
            if one.module.partition(".")[0] not in {*sys.stdlib_module_names, "fedrec"}:
                yield one.module


def test_what_a_foreign_module_needs_is_declared() -> None:
    """uvicorn's fast parser is a module of uvicorn that cannot be imported with uvicorn alone."""
    owners, looked, lacking = packages_distributions(), set[str](), []
    for module in sorted(set(foreign())):
        package, file = module.partition(".")[0], file_of(module)
        if file is None:  # what is not installed here is not looked at, nor what is no Python
            continue
        looked.add(module)
        extra = EXTRAS.get(package)
        for name in set(at_its_top(file)) - sys.stdlib_module_names - {package}:
            if not with_the(extra) & {plain(owner) for owner in owners.get(name, [name])}:
                lacking.append(f"{module} imports {name}, which {f'fedrec[{extra}]' if extra else 'fedrec'} lacks")
    assert lacking == []
    assert "uvicorn.protocols.http.httptools_impl" in looked


@pytest.mark.parametrize("extra", sorted(set(EXTRAS.values())))
def test_what_an_extra_declares_is_named_where_it_is_missing(extra: str) -> None:
    declared = named([one for one in PROJECT["optional-dependencies"][extra] if not one.startswith("fedrec[")])
    assert declared
    assert {IMPORTED_AS.get(name, name) for name in declared} <= {name for name in EXTRAS if EXTRAS[name] == extra}
