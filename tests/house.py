"""The house rules, as a check of any tree of sources: ``tests/test_architecture.py`` holds them against ours."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LAYERS: tuple[frozenset[str], ...] = tuple(
    map(
        frozenset,
        (
            {"errors", "extras", "keyed", "compiled", "threads", "memory", "interrupts"},
            {"data"},
            {"evaluation"},
            {"core"},
            {"backbones", "maths"},
            {"learn", "privacy", "secure", "robust"},
            {"methods", "attacks"},
            {"recipes"},
            {"runs"},
            {"simulate", "deploy", "report"},
            {"experiment"},
            {"laws", "serve"},
            {"cli"},
        ),
    )
)
"""Rooms from the ground up: a room may use those below it and those beside it, never those above."""
AT_THE_TOP = {"__init__", "__main__", "errors", "extras", "keyed", "compiled", "threads", "memory", "interrupts"}
"""Files that stand at the top of the tree, in no room: the public side, and the ground that all stand on."""


@dataclass(frozen=True)
class Import:
    """A module that another one imports, at any depth of its code."""

    line: int
    module: str
    name: str = ""


def imports(source: str) -> Iterator[Import]:
    """All imports of a source: at the top, inside functions and for types alone."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (Import(node.lineno, node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield Import(node.lineno, "." * node.level + (node.module or ""))


class Tree:
    """The sources of one package."""

    def __init__(self, root: Path, package: str = "fedrec") -> None:
        self.root, self.package = root, package
        self.files = {self._name(path): path for path in sorted(root.rglob("*.py"))}
        self.imports = {name: list(imports(path.read_text(encoding="utf-8"))) for name, path in self.files.items()}

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join((self.package, *(parts[:-1] if parts[-1] == "__init__" else parts)))

    def path(self, module: str) -> str:
        return self.files[module].relative_to(self.root).as_posix()

    def target(self, found: Import) -> str | None:
        """The module of the package that an import reads; None for other packages."""
        whole = f"{found.module}.{found.name}" if found.name else found.module
        return next((name for name in (whole, found.module) if name in self.files), None)

    def graph(self) -> dict[str, set[str]]:
        """Which modules each module imports. The package's own file serves the outside: nothing inside goes by it."""
        return {
            name: {target for found in self.imports[name] if (target := self.target(found)) is not None} - {name}
            for name in self.files
            if name != self.package
        }


def room(module: str) -> str:
    """``fedrec.learn.kernel.mf`` is in ``learn``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def loose_files(tree: Tree) -> list[str]:
    """Files at the top that belong into a room, and rooms that the plan does not have."""
    known = frozenset().union(*LAYERS)
    found = [f"{path.name} stands at the top" for path in tree.root.glob("*.py") if path.stem not in AT_THE_TOP]
    rooms = {path.relative_to(tree.root).parts[0] for path in tree.files.values() if path.parent != tree.root}
    return found + [f"{name}/ is no room of the house" for name in sorted(rooms - known)]


def upward_imports(tree: Tree) -> list[str]:
    """Imports from a room above."""
    level = {name: number for number, names in enumerate(LAYERS) for name in names}
    return [
        f"{tree.path(module)}:{found.line} imports {target} from above"
        for module in tree.files
        for found in tree.imports[module]
        if (target := tree.target(found)) is not None
        and module != tree.package
        and level.get(room(target), -1) > level.get(room(module), len(LAYERS))
    ]


def lost_imports(tree: Tree) -> list[str]:
    """Imports of modules that are not there: those inside functions would only be noticed when they are reached."""
    return [
        f"{tree.path(module)}:{found.line} imports {found.module}, which is not there"
        for module in tree.files
        for found in tree.imports[module]
        if found.module.split(".")[0] == tree.package
        and found.module not in tree.files
        and not (tree.root / "/".join(found.module.split(".")[1:])).is_dir()
    ]


def relative_imports(tree: Tree) -> list[str]:
    """Imports whose place cannot be read off them."""
    return [
        f"{tree.path(module)}:{found.line} imports {found.module}, which is relative; name it from {tree.package} on"
        for module in tree.files
        for found in tree.imports[module]
        if found.module.startswith(".")
    ]


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of modules that import one another, directly or through others (Tarjan's strong components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_ones: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        open_ones.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in open_ones:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            group = [open_ones.pop()]
            while group[-1] != module:
                group.append(open_ones.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph):
        if module not in number:
            visit(module)
    return found


def strayed(tree: Tree, package: str, places: Sequence[str], name: str = "") -> list[str]:
    """Imports of a package (or of one name of it) outside the places where it may be imported."""
    return [
        f"{tree.path(module)}:{found.line} imports {package}{f'.{name}' if name else ''}; only {', '.join(places)} may"
        for module in tree.files
        for found in tree.imports[module]
        if found.module.split(".")[0] == package
        and (not name or found.name == name or not found.name)
        and not tree.path(module).startswith(tuple(places))
    ]


def violations(root: Path, package: str = "fedrec") -> list[str]:
    """All that is wrong with a tree; empty where it keeps the rules."""
    tree = Tree(root, package)
    return [
        *loose_files(tree),
        *upward_imports(tree),
        *relative_imports(tree),
        *lost_imports(tree),
        *(f"{' and '.join(group)} import one another" for group in circles(tree.graph())),
        *strayed(tree, "flwr", ("deploy/flower/",)),
        *strayed(tree, "numba", ("compiled.py",), "njit"),
        *(f"{path.relative_to(root)} is called utils" for path in root.rglob("*") if "util" in path.name),
    ]
